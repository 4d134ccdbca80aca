#include "headrace/tensor/aten_ops.h"
#include "headrace/tensor/aten_types.h"
#include "headrace/tensor/torch.h"

namespace headrace::tensor::aten {

void add_row_sums(const at::Tensor& grad_NO, const at::Tensor& grad_O) {
  at::Tensor sum = grad_O;
  sum.add_(wide(grad_NO).sum(0));
}

// Sorts the ids on a GPU: always the same order of sums there.
void embedding_backward(const at::Tensor& ids_N, const at::Tensor& grad_NC, const at::Tensor& grad_weight_VC) {
  at::Tensor table = grad_weight_VC;
  table.index_put_({ids_N}, grad_NC.to(table.scalar_type()), /*accumulate=*/true);
}

}  // namespace headrace::tensor::aten
