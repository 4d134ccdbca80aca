// Attention of one long document through libtorch's fused CPU kernel, which beats ours from some 150 tokens on; ours
// (kernel/attention) takes short documents and sliding windows. Same contract as fused_attention.h, one document.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "headrace/tensor/fused_attention.h"

namespace headrace::tensor {

// True when libtorch's kernel serves a document of so many tokens, and is the faster one.
bool is_flash_document(int64_t tokens, const AttentionShape& shape);

// Rows [first, first + tokens) of qkv_NE into the same rows of result.y_NO and result.lse_HN.
void flash_document(const at::Tensor& qkv_NE, int64_t first, int64_t tokens, const AttentionShape& shape,
                    Attention& result);

// The same rows of the gradient: writes all of grad_qkv_NE's channels.
void flash_document_backward(const at::Tensor& grad_y_NO, const at::Tensor& qkv_NE, const Attention& saved,
                             int64_t first, int64_t tokens, const AttentionShape& shape, at::Tensor& grad_qkv_NE);

}  // namespace headrace::tensor
