// What fused_norm.h, fused_activation.h, fused_attention.h and fused_linear.h do, made of libtorch's operators: for any
// device and any floating type, where our kernels (fp32 on the CPU) do not reach. Same contracts and shapes. Sums and
// statistics of 16-bit tensors are taken in fp32; each result is rounded once. Those headers choose; call them.
#pragma once

#include "headrace/tensor/fused_attention.h"
#include "headrace/tensor/fused_norm.h"

namespace headrace::tensor::aten {

RmsNorm rms_norm(const at::Tensor& x_NC, const at::Tensor& weight_C, double eps);
at::Tensor rms_norm_again(const at::Tensor& x_NC, const at::Tensor& inverse_N, const at::Tensor& weight_C);
void rms_norm_backward(const at::Tensor& grad_y_NC, const at::Tensor& x_NC, const at::Tensor& inverse_N,
                       const Parameter& weight_C, at::Tensor& grad_x_NC);

LayerNorm layer_norm(const at::Tensor& x_NC, const at::Tensor& weight_C, const at::Tensor& bias_C, double eps);
at::Tensor layer_norm_again(const at::Tensor& x_NC, const LayerNorm& saved, const at::Tensor& weight_C,
                            const at::Tensor& bias_C);
void layer_norm_backward(const at::Tensor& grad_y_NC, const at::Tensor& x_NC, const LayerNorm& saved,
                         const Parameter& weight_C, const Parameter& bias_C, at::Tensor& grad_x_NC);

at::Tensor swiglu(const at::Tensor& gate_up_N2F);
void swiglu_backward_(at::Tensor& gate_up_N2F, at::Tensor& grad_y_NF);
at::Tensor gelu_tanh(const at::Tensor& x_NF);
void gelu_tanh_backward_(at::Tensor& x_NF, at::Tensor& grad_y_NF);

void rotary_(at::Tensor& qkv_NE, const at::Tensor& cos_NR, const at::Tensor& sin_NR, const AttentionShape& shape,
             bool backward);
// Holds scores of some heads of one document, [H / K, T, T] for each key head, a few times: 256 MiB each, or one key
// head's where those are more.
Attention attention(const at::Tensor& qkv_NE, std::span<const int64_t> starts, const AttentionShape& shape);
at::Tensor attention_backward(const at::Tensor& grad_y_NO, const at::Tensor& qkv_NE, const Attention& saved,
                              std::span<const int64_t> starts, const AttentionShape& shape);

void add_row_sums(const at::Tensor& grad_NO, const at::Tensor& grad_O);
// Ids are trusted: asking would wait for the device.
void embedding_backward(const at::Tensor& ids_N, const at::Tensor& grad_NC, const at::Tensor& grad_weight_VC);

}  // namespace headrace::tensor::aten
