// The head and its loss in one: logits = x_NC times the transpose of weight_VC, loss = sum of -log softmax at the
// target. The [tokens, vocabulary] logits never exist whole, and rows whose label is masked are never multiplied with
// the head. Shapes: N tokens, C channels, V vocabulary. fp32, CPU; weight_VC contiguous. Any thread; uses torch's
// threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace headrace::model {

inline constexpr int64_t kMaskedLabel = -100;

// [bytes] of logits that exist at a time: long enough for products at full speed, small beside any model.
inline constexpr int64_t kLogitsBytes = int64_t{128} << 20;

struct LinearCrossEntropy {
  double loss_sum = 0;         // [nats] sum over trained tokens, not scaled
  int64_t trained_tokens = 0;  // rows whose label is not masked
  at::Tensor grad_x_NC;        // grad_scale * d loss_sum / d x; zero rows where masked. Undefined when forward only
};

// targets_N: int64, kMaskedLabel where no loss is taken. Gradients are computed at once, in the forward pass:
// grad_weight_VC += grad_scale * d loss_sum / d weight, in place; undefined means forward only, no gradients at all.
// Softmax in fp32 after subtracting the row's maximum; the loss is summed over rows in double.
// Rows are taken in chunks of at most logits_bytes of logits (at least one row); chunks change only the rounding of the
// products, and no bit of the result depends on the thread count but through libtorch's products.
// Throws InternalError when shapes disagree, DataError when a label is neither masked nor in [0, V); on a GPU labels
// are trusted. Waits for a GPU once.
LinearCrossEntropy linear_cross_entropy(const at::Tensor& x_NC, const at::Tensor& weight_VC,
                                        const at::Tensor& targets_N, float grad_scale, at::Tensor grad_weight_VC,
                                        int64_t logits_bytes = kLogitsBytes);

}  // namespace headrace::model
