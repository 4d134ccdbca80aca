// Causal attention of one head over one document, forward and backward, fp32: for documents packed without padding.
// Exact softmax over whole rows (no running rescale), a block of query rows at a time; scores are computed again in
// backward from the saved log-sum-exp. Legend: T tokens, D head channels.
// Pure functions of their memory; any thread with its own scratch. A (document, head) pair is computed alone in a fixed
// order, so threads and packing change no bit. (The vector width may.)
#pragma once

#include <cstddef>
#include <span>

namespace headrace::kernel {

// q, k, v point at the first row of the document, at the head's first channel; D channels a row.
struct AttentionHead {
  const float* q;
  const float* k;
  const float* v;
  size_t stride;  // [elements] between rows of q, k and v
  size_t tokens;
  size_t channels;
  float scale;        // multiplied into q.k
  size_t window = 0;  // [tokens] a row sees itself and window - 1 before it; 0: all before it
};

struct AttentionGradient {
  const float* y;
  const float* grad_y;
  size_t y_stride;  // [elements] between rows of y and grad_y
  float* grad_q;    // written, not added to; as are grad_k and grad_v
  size_t q_stride;
  float* grad_k;
  float* grad_v;
  size_t kv_stride;
};

// [floats] that forward and backward want as scratch for a document of that length.
size_t attention_scratch(size_t tokens, size_t channels);

// y[t] = sum over s <= t of softmax(scale * q[t].k[s]) v[s]; lse_T: log of the sum of exponentials of each row.
// Throws InternalError when scratch or lse_T is too small.
void attention_head(const AttentionHead& head, float* y, size_t y_stride, std::span<float> lse_T,
                    std::span<float> scratch);

void attention_head_backward(const AttentionHead& head, std::span<const float> lse_T, const AttentionGradient& gradient,
                             std::span<float> scratch);

}  // namespace headrace::kernel
