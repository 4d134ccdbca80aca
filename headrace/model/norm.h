// The norm that a family uses: RMS norm (no bias) or layer norm (with one). Legend: N rows, C channels.
#pragma once

#include "headrace/model/bound_block.h"

namespace headrace::model {

// What backward needs beside the input, which the caller keeps: a number or two a row.
struct NormTape {
  at::Tensor mean_N;  // layer norm only
  at::Tensor inverse_N;
};

class Norm {
 public:
  // RMS norm when the block has no parameter of the role `bias`.
  Norm(const BoundBlock& block, Role weight, Role bias, double epsilon);

  // Fills `tape` unless it is null.
  at::Tensor forward(const at::Tensor& x_NC, NormTape* tape) const;
  // The output once more, bitwise equal.
  at::Tensor again(const at::Tensor& x_NC, const NormTape& tape) const;
  // grad_x_NC += the gradient of x; adds the parameters' gradients.
  void backward(const at::Tensor& grad_y_NC, const at::Tensor& x_NC, const NormTape& tape, at::Tensor& grad_x_NC) const;

 private:
  tensor::Parameter weight_, bias_;
  double epsilon_;
};

}  // namespace headrace::model
