#include "headrace/model/bound_block.h"

#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/tensor/flat.h"
#include "headrace/tensor/torch.h"

namespace headrace::model {
namespace {

void check_length(const BlockSpec& spec, const at::Tensor& flat, const char* kind) {
  if (flat.defined() && flat.dim() == 1 && flat.numel() == spec.numel) return;
  throw InternalError("model.bind", "block " + spec.name + " needs a flat " + kind + " buffer of " +
                                        std::to_string(spec.numel) + " elements and got " +
                                        std::to_string(flat.defined() ? flat.numel() : 0) + ".");
}

}  // namespace

BoundBlock::BoundBlock(const BlockSpec& spec, const BlockBuffers& buffers) : spec_(spec), buffers_(buffers) {
  check_length(spec, buffers.weights, "weight");
  if (buffers.gradients.defined()) check_length(spec, buffers.gradients, "gradient");
}

tensor::Parameter BoundBlock::get(Role role) const { return has(role) ? join({role}) : tensor::Parameter{}; }

bool BoundBlock::adjoins(Roles roles) const {
  const ParameterSpec* before = nullptr;
  for (Role role : roles) {
    const ParameterSpec* spec = spec_.find(role);
    if (before != nullptr && before->offset + before->numel != spec->offset) return false;
    before = spec;
  }
  return true;
}

// One parameter that spans those of the roles, which adjoin; empty when the block has none of them.
tensor::Parameter BoundBlock::join(Roles roles) const {
  const ParameterSpec* first = spec_.find(*roles.begin());
  if (first == nullptr) return {};
  std::vector<int64_t> shape = first->shape;
  for (auto role = roles.begin() + 1; role != roles.end(); ++role) shape[0] += spec_.find(*role)->shape[0];
  const auto bind = [&](const at::Tensor& flat) {
    if (!flat.defined()) return at::Tensor();
    const at::Tensor view = tensor::view_of(flat, first->offset, shape);
    return first->layout == Layout::kInOut ? view.t() : view;
  };
  return {bind(buffers_.weights), bind(buffers_.gradients)};
}

at::Tensor BoundBlock::linear(const at::Tensor& x_NI, Roles matrices, Roles biases) const {
  const bool has_bias = has(*biases.begin());
  if (adjoins(matrices) && (!has_bias || adjoins(biases))) {
    return tensor::linear(x_NI, join(matrices).value, join(biases).value);
  }
  std::vector<at::Tensor> outputs;
  for (auto matrix = matrices.begin(), bias = biases.begin(); matrix != matrices.end(); ++matrix, ++bias) {
    outputs.push_back(tensor::linear(x_NI, get(*matrix).value, get(*bias).value));
  }
  return at::cat(outputs, 1);
}

at::Tensor BoundBlock::linear_backward(const at::Tensor& grad_NO, const at::Tensor& x_NI, Roles matrices,
                                       Roles biases) const {
  const bool has_bias = has(*biases.begin());
  if (adjoins(matrices) && (!has_bias || adjoins(biases))) {
    return tensor::linear_backward(grad_NO, x_NI, join(matrices), join(biases));
  }
  at::Tensor grad_NI = at::zeros_like(x_NI);
  int64_t first = 0;
  for (auto matrix = matrices.begin(), bias = biases.begin(); matrix != matrices.end(); ++matrix, ++bias) {
    const tensor::Parameter weight = get(*matrix);
    const at::Tensor grad = grad_NO.narrow(1, first, weight.value.size(0)).contiguous();
    grad_NI.add_(tensor::linear_backward(grad, x_NI, weight, get(*bias)));
    first += weight.value.size(0);
  }
  return grad_NI;
}

}  // namespace headrace::model
