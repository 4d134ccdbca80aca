// A block's parameters as views into its flat buffers, and its products. Lives as long as one forward or backward.
// Legend: N tokens, I and O input and output channels.
#pragma once

#include <initializer_list>

#include "headrace/model/block.h"
#include "headrace/tensor/fused_linear.h"

namespace headrace::model {

class BoundBlock {
 public:
  // Throws InternalError when a buffer's length is not the block's. Spec and buffers must outlive this object.
  BoundBlock(const BlockSpec& spec, const BlockBuffers& buffers);

  bool has(Role role) const { return spec_.find(role) != nullptr; }
  // Undefined tensors when the block has no parameter of that role. Matrices appear as [out, in] whatever their
  // storage.
  tensor::Parameter get(Role role) const;

  // The outputs of several matrices side by side: one product where they adjoin in the flat buffer. Biases are added
  // where the block has them.
  using Roles = std::initializer_list<Role>;
  at::Tensor linear(const at::Tensor& x_NI, Roles matrices, Roles biases) const;
  // Adds the parameters' gradients and returns the gradient of x.
  at::Tensor linear_backward(const at::Tensor& grad_NO, const at::Tensor& x_NI, Roles matrices, Roles biases) const;

 private:
  bool adjoins(Roles roles) const;
  tensor::Parameter join(Roles roles) const;

  const BlockSpec& spec_;
  const BlockBuffers& buffers_;
};

}  // namespace headrace::model
