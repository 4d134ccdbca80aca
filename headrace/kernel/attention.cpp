#include "headrace/kernel/attention.h"

#include <cmath>
#include <limits>
#include <string>

#include "headrace/base/errors.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headrace/kernel/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// After highway.h: it holds code for the target at hand.
#include <hwy/contrib/math/math-inl.h>

#ifndef HEADRACE_KERNEL_ATTENTION_ONCE
#define HEADRACE_KERNEL_ATTENTION_ONCE
namespace headrace::kernel {

constexpr size_t kQueryRows = 24;  // query rows a block: their scores stay in the second-level cache for long documents
constexpr size_t kPadding = 32;    // [floats] padded lengths are a multiple of any target's panel width

constexpr size_t padded(size_t count) { return (count + kPadding - 1) / kPadding * kPadding; }

// Rows of scores are one cache line longer than a power of two, lest they share one set of the cache.
constexpr size_t score_stride(size_t tokens) { return padded(tokens) + 16; }

// Hands out aligned pieces of the caller's scratch.
class Pieces {
 public:
  explicit Pieces(float* begin) : next_(begin) {}
  float* take(size_t count) {
    float* piece = next_;
    next_ += padded(count);
    return piece;
  }

 private:
  float* next_;
};

}  // namespace headrace::kernel
#endif

HWY_BEFORE_NAMESPACE();
namespace headrace::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;

// A panel is a matrix of kWidth columns stored row after row: what the product's inner loop reads.
constexpr size_t kWidth = 2 * hn::MaxLanes(Tag());

// a[m, k] lies at data[m * row + k * step].
struct Left {
  const float* data;
  size_t row, step;
};

// Rows [0, kRows) of one panel of a product. 6 x 2 accumulators fill a sixteen-register machine.
template <size_t kRows>
HWY_INLINE void tile(const Left& a, size_t depth, const float* HWY_RESTRICT b, float* HWY_RESTRICT c, size_t c_row,
                     bool adds) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<Tag> left[kRows], right[kRows];
  for (size_t m = 0; m < kRows; ++m) {
    left[m] = adds ? hn::LoadU(d, c + m * c_row) : hn::Zero(d);
    right[m] = adds ? hn::LoadU(d, c + m * c_row + lanes) : hn::Zero(d);
  }
  for (size_t k = 0; k < depth; ++k, b += kWidth) {
    const auto b_left = hn::LoadU(d, b), b_right = hn::LoadU(d, b + lanes);
    for (size_t m = 0; m < kRows; ++m) {
      const auto a_mk = hn::Set(d, a.data[m * a.row + k * a.step]);
      left[m] = hn::MulAdd(a_mk, b_left, left[m]);
      right[m] = hn::MulAdd(a_mk, b_right, right[m]);
    }
  }
  for (size_t m = 0; m < kRows; ++m) {
    hn::StoreU(left[m], d, c + m * c_row);
    hn::StoreU(right[m], d, c + m * c_row + lanes);
  }
}

void tile_of(size_t rows, const Left& a, size_t depth, const float* b, float* c, size_t c_row, bool adds) {
  switch (rows) {
    case 6:
      return tile<6>(a, depth, b, c, c_row, adds);
    case 5:
      return tile<5>(a, depth, b, c, c_row, adds);
    case 4:
      return tile<4>(a, depth, b, c, c_row, adds);
    case 3:
      return tile<3>(a, depth, b, c, c_row, adds);
    case 2:
      return tile<2>(a, depth, b, c, c_row, adds);
    default:
      return tile<1>(a, depth, b, c, c_row, adds);
  }
}

struct Product {
  size_t rows, depth;
  size_t panels;      // of b and c
  size_t panel_size;  // [elements] between panels of b
};

// c[rows, panels * kWidth] = a[rows, depth] b, or += when adds.
void multiply(const Product& size, const Left& a, const float* b, float* c, size_t c_row, bool adds = false) {
  for (size_t panel = 0; panel < size.panels; ++panel, b += size.panel_size, c += kWidth) {
    for (size_t m = 0; m < size.rows; m += 6) {
      tile_of(HWY_MIN(6, size.rows - m), {a.data + m * a.row, a.row, a.step}, size.depth, b, c + m * c_row, c_row,
              adds);
    }
  }
}

// Panels of channels: panel p, row t holds channels [p * kWidth, ...) of row t; missing channels are zero.
void pack_rows(const float* source, size_t stride, size_t rows, size_t channels, float* panels) {
  for (size_t begin = 0; begin < channels; begin += kWidth) {
    const size_t present = HWY_MIN(kWidth, channels - begin);
    for (size_t t = 0; t < rows; ++t, panels += kWidth) {
      const float* row = source + t * stride + begin;
      for (size_t w = 0; w < present; ++w) panels[w] = row[w];
      for (size_t w = present; w < kWidth; ++w) panels[w] = 0;
    }
  }
}

// Panels of tokens: panel p, row c holds channel c of tokens [p * kWidth, ...); missing tokens are zero.
void pack_transposed(const float* source, size_t stride, size_t rows, size_t channels, float* panels) {
  for (size_t begin = 0; begin < rows; begin += kWidth, panels += kWidth * channels) {
    for (size_t w = 0; w < kWidth; ++w) {
      const float* row = source + (begin + w) * stride;
      const bool present = begin + w < rows;
      for (size_t c = 0; c < channels; ++c) panels[c * kWidth + w] = present ? row[c] : 0;
    }
  }
}

// exp that keeps NaN, which Highway's does not.
template <class V>
HWY_INLINE V exp_of(V x) {
  const Tag d;
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

// A block of query rows and the keys that any of them sees.
struct Block {
  size_t first, rows;         // query rows [first, first + rows)
  size_t key_begin, key_end;  // key_begin is a multiple of kWidth
  size_t num_panels() const { return (key_end - key_begin + kWidth - 1) / kWidth; }
};

Block block_at(const AttentionHead& head, size_t first) {
  const size_t rows = HWY_MIN(kQueryRows, head.tokens - first);
  const size_t hidden = head.window > 0 && first + 1 > head.window ? first + 1 - head.window : 0;
  return {first, rows, hidden / kWidth * kWidth, first + rows};
}

// The first key that a query row sees; the last is the row itself.
size_t first_key(const AttentionHead& head, size_t row) {
  return head.window > 0 && row + 1 > head.window ? row + 1 - head.window : 0;
}

// Raw scores of a block against its keys, at columns [key_begin, ...) of `scores`.
void score_block(const AttentionHead& head, const Block& block, const float* k_panels, float* scores, size_t stride) {
  multiply({block.rows, head.channels, block.num_panels(), kWidth * head.channels},
           {head.q + block.first * head.stride, head.stride, 1}, k_panels + block.key_begin * head.channels,
           scores + block.key_begin, stride);
}

// Columns outside [first, last] of a row's panels become `value`.
HWY_INLINE void fill_outside(float* row, const Block& block, size_t first, size_t last, float value) {
  for (size_t s = block.key_begin; s < first; ++s) row[s] = value;
  for (size_t s = last + 1; s < block.key_begin + block.num_panels() * kWidth; ++s) row[s] = value;
}

// Scores become exponentials of (scale * score - maximum); returns their sum, writes the scaled maximum.
float exponentiate(float* row, size_t count, float scale, float* top) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  auto most = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (size_t s = 0; s < count; s += lanes) {
    const auto scaled = hn::Mul(hn::LoadU(d, row + s), hn::Set(d, scale));
    hn::StoreU(scaled, d, row + s);
    most = hn::Max(most, scaled);
  }
  *top = hn::GetLane(hn::MaxOfLanes(d, most));
  auto sum = hn::Zero(d);
  for (size_t s = 0; s < count; s += lanes) {
    const auto e = exp_of(hn::Sub(hn::LoadU(d, row + s), hn::Set(d, *top)));
    hn::StoreU(e, d, row + s);
    sum = hn::Add(sum, e);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void forward(const AttentionHead& head, float* y, size_t y_stride, float* lse, float* scratch) {
  const size_t stride = score_stride(head.tokens), width = padded(head.channels);
  Pieces pieces(scratch);
  float* k_panels = pieces.take(head.channels * padded(head.tokens));
  float* v_panels = pieces.take(width * head.tokens);
  float* scores = pieces.take(kQueryRows * stride);
  float* out = pieces.take(kQueryRows * width);
  pack_transposed(head.k, head.stride, head.tokens, head.channels, k_panels);
  pack_rows(head.v, head.stride, head.tokens, head.channels, v_panels);
  for (size_t first = 0; first < head.tokens; first += kQueryRows) {
    const Block block = block_at(head, first);
    score_block(head, block, k_panels, scores, stride);
    float sums[kQueryRows];
    for (size_t r = 0; r < block.rows; ++r) {
      float* row = scores + r * stride;
      fill_outside(row, block, first_key(head, first + r), first + r, -std::numeric_limits<float>::infinity());
      float top = 0;
      sums[r] = exponentiate(row + block.key_begin, block.num_panels() * kWidth, head.scale, &top);
      lse[first + r] = top + std::log(sums[r]);
    }
    multiply({block.rows, block.key_end - block.key_begin, (head.channels + kWidth - 1) / kWidth, kWidth * head.tokens},
             {scores + block.key_begin, stride, 1}, v_panels + block.key_begin * kWidth, out, width);
    for (size_t r = 0; r < block.rows; ++r) {
      const float inverse = 1 / sums[r];
      for (size_t c = 0; c < head.channels; ++c) y[(first + r) * y_stride + c] = out[r * width + c] * inverse;
    }
  }
}

// Row r of scores becomes the probabilities, row r of `slopes` (gradient of the probabilities) that of the raw scores.
void differentiate(float* row, float* slopes, size_t count, float scale, float lse, float delta) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  for (size_t s = 0; s < count; s += lanes) {
    const auto p = exp_of(hn::Sub(hn::Mul(hn::LoadU(d, row + s), hn::Set(d, scale)), hn::Set(d, lse)));
    hn::StoreU(p, d, row + s);
    hn::StoreU(hn::Mul(p, hn::Sub(hn::LoadU(d, slopes + s), hn::Set(d, delta))), d, slopes + s);
  }
}

float dot(const float* a, const float* b, size_t count) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  auto sums = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) sums = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sums);
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// rows of width columns, scaled, into rows of `channels` at their stride.
void write_scaled(const float* source, size_t width, size_t rows, size_t channels, float scale, float* to,
                  size_t stride) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < channels; ++c) to[r * stride + c] = source[r * width + c] * scale;
  }
}

// What backward of one head keeps in scratch.
struct BackwardScratch {
  BackwardScratch(const AttentionHead& head, float* scratch)
      : stride(score_stride(head.tokens)), width(padded(head.channels)) {
    Pieces pieces(scratch);
    k_transposed = pieces.take(head.channels * padded(head.tokens));
    v_transposed = pieces.take(head.channels * padded(head.tokens));
    k_panels = pieces.take(width * head.tokens);
    scores = pieces.take(kQueryRows * stride);
    slopes = pieces.take(kQueryRows * stride);
    q_panels = pieces.take(kQueryRows * width);
    grad_y_panels = pieces.take(kQueryRows * width);
    grad_q = pieces.take(kQueryRows * width);
    grad_k = pieces.take(width * head.tokens);
    grad_v = pieces.take(width * head.tokens);
  }
  size_t stride, width;  // of scores and slopes; of gradients
  float *k_transposed, *v_transposed, *k_panels, *scores, *slopes, *q_panels, *grad_y_panels, *grad_q, *grad_k, *grad_v;
};

// Probabilities and score gradients of one block of query rows.
void slope_block(const AttentionHead& head, const float* lse, const AttentionGradient& g, const Block& block,
                 const BackwardScratch& s) {
  score_block(head, block, s.k_transposed, s.scores, s.stride);
  multiply({block.rows, head.channels, block.num_panels(), kWidth * head.channels},
           {g.grad_y + block.first * g.y_stride, g.y_stride, 1}, s.v_transposed + block.key_begin * head.channels,
           s.slopes + block.key_begin, s.stride);
  for (size_t r = 0; r < block.rows; ++r) {
    const size_t row = block.first + r;
    const float delta = dot(g.y + row * g.y_stride, g.grad_y + row * g.y_stride, head.channels);
    fill_outside(s.scores + r * s.stride, block, first_key(head, row), row, -std::numeric_limits<float>::infinity());
    fill_outside(s.slopes + r * s.stride, block, first_key(head, row), row, 0);
    differentiate(s.scores + r * s.stride + block.key_begin, s.slopes + r * s.stride + block.key_begin,
                  block.num_panels() * kWidth, head.scale, lse[row], delta);
  }
}

void backward(const AttentionHead& head, const float* lse, const AttentionGradient& g, float* scratch) {
  const BackwardScratch s(head, scratch);
  const size_t channel_panels = (head.channels + kWidth - 1) / kWidth;
  pack_transposed(head.k, head.stride, head.tokens, head.channels, s.k_transposed);
  pack_transposed(head.v, head.stride, head.tokens, head.channels, s.v_transposed);
  pack_rows(head.k, head.stride, head.tokens, head.channels, s.k_panels);
  for (size_t i = 0; i < s.width * head.tokens; ++i) s.grad_k[i] = s.grad_v[i] = 0;
  for (size_t first = 0; first < head.tokens; first += kQueryRows) {
    const Block block = block_at(head, first);
    const size_t keys = block.key_end - block.key_begin;
    slope_block(head, lse, g, block, s);
    multiply({block.rows, keys, channel_panels, kWidth * head.tokens}, {s.slopes + block.key_begin, s.stride, 1},
             s.k_panels + block.key_begin * kWidth, s.grad_q, s.width);
    write_scaled(s.grad_q, s.width, block.rows, head.channels, head.scale, g.grad_q + first * g.q_stride, g.q_stride);
    pack_rows(head.q + first * head.stride, head.stride, block.rows, head.channels, s.q_panels);
    pack_rows(g.grad_y + first * g.y_stride, g.y_stride, block.rows, head.channels, s.grad_y_panels);
    const Product over_rows{keys, block.rows, channel_panels, kWidth * block.rows};
    multiply(over_rows, {s.slopes + block.key_begin, 1, s.stride}, s.q_panels, s.grad_k + block.key_begin * s.width,
             s.width, true);
    multiply(over_rows, {s.scores + block.key_begin, 1, s.stride}, s.grad_y_panels,
             s.grad_v + block.key_begin * s.width, s.width, true);
  }
  write_scaled(s.grad_k, s.width, head.tokens, head.channels, head.scale, g.grad_k, g.kv_stride);
  write_scaled(s.grad_v, s.width, head.tokens, head.channels, 1, g.grad_v, g.kv_stride);
}

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernel {
namespace {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

void expect_room(const AttentionHead& head, size_t lse, size_t scratch) {
  const size_t need = attention_scratch(head.tokens, head.channels);
  if (scratch >= need && lse >= head.tokens && head.stride >= head.channels) return;
  throw InternalError("kernel.attention", "scratch of " + std::to_string(scratch) + " floats and " +
                                              std::to_string(lse) + " row sums for " + std::to_string(head.tokens) +
                                              " tokens, which need " + std::to_string(need) + ".");
}

}  // namespace

size_t attention_scratch(size_t tokens, size_t channels) {
  const size_t by_token = 5 * padded(channels) * padded(tokens);
  const size_t by_row = kQueryRows * (2 * score_stride(tokens) + 3 * padded(channels));
  return by_token + by_row + 10 * kPadding;  // ten pieces, each rounded up
}

void attention_head(const AttentionHead& head, float* y, size_t y_stride, std::span<float> lse_T,
                    std::span<float> scratch) {
  expect_room(head, lse_T.size(), scratch.size());
  HWY_DYNAMIC_DISPATCH(forward)(head, y, y_stride, lse_T.data(), scratch.data());
}

void attention_head_backward(const AttentionHead& head, std::span<const float> lse_T, const AttentionGradient& gradient,
                             std::span<float> scratch) {
  expect_room(head, lse_T.size(), scratch.size());
  HWY_DYNAMIC_DISPATCH(backward)(head, lse_T.data(), gradient, scratch.data());
}

}  // namespace headrace::kernel
#endif
