#include "headrace/kernel/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/base/rng.h"

namespace headrace::kernel {
namespace {

using Values = std::vector<float>;

Values random_values(size_t count, uint64_t seed) {
  Values values(count);
  Rng rng(seed);
  for (float& x : values) x = static_cast<float>(rng.normal());
  return values;
}

// One head inside rows of q, k, v with something else around it.
struct Case {
  size_t tokens, channels, window;
  size_t stride() const { return 3 * channels + 5; }
  Values qkv = random_values(tokens * stride() + stride(), 1);
  AttentionHead head() const {
    return {qkv.data(),
            qkv.data() + channels,
            qkv.data() + 2 * channels + 5,
            stride(),
            tokens,
            channels,
            static_cast<float>(1 / std::sqrt(static_cast<double>(channels))),
            window};
  }
};

struct Result {
  Values y, lse, grad_q, grad_k, grad_v;
};

Result run(const Case& c, const Values& grad_y) {
  const size_t size = c.tokens * c.channels;
  Result r{Values(size), Values(c.tokens), Values(size), Values(size), Values(size)};
  Values scratch(attention_scratch(c.tokens, c.channels), std::nanf(""));
  attention_head(c.head(), r.y.data(), c.channels, r.lse, scratch);
  std::fill(scratch.begin(), scratch.end(), std::nanf(""));
  attention_head_backward(c.head(), r.lse,
                          {.y = r.y.data(),
                           .grad_y = grad_y.data(),
                           .y_stride = c.channels,
                           .grad_q = r.grad_q.data(),
                           .q_stride = c.channels,
                           .grad_k = r.grad_k.data(),
                           .grad_v = r.grad_v.data(),
                           .kv_stride = c.channels},
                          scratch);
  return r;
}

// The definition, in double, row by row.
struct Reference {
  std::vector<double> y, lse, grad_q, grad_k, grad_v;
  Reference(const Case& c, const Values& grad_y) {
    const AttentionHead h = c.head();
    const size_t size = c.tokens * c.channels;
    y.resize(size), grad_q.resize(size), grad_k.resize(size), grad_v.resize(size), lse.resize(c.tokens);
    const auto at = [&](const float* x, size_t t, size_t d) { return double{x[t * h.stride + d]}; };
    for (size_t t = 0; t < c.tokens; ++t) {
      const size_t first = c.window > 0 && t + 1 > c.window ? t + 1 - c.window : 0;
      std::vector<double> p(c.tokens), slope(c.tokens);
      double sum = 0, mean_slope = 0;
      for (size_t s = first; s <= t; ++s) {
        for (size_t d = 0; d < c.channels; ++d) p[s] += at(h.q, t, d) * at(h.k, s, d) * h.scale;
        sum += p[s] = std::exp(p[s]);
      }
      lse[t] = std::log(sum);
      for (size_t s = first; s <= t; ++s) {
        p[s] /= sum;
        for (size_t d = 0; d < c.channels; ++d) {
          y[t * c.channels + d] += p[s] * at(h.v, s, d);
          grad_v[s * c.channels + d] += p[s] * grad_y[t * c.channels + d];
          slope[s] += grad_y[t * c.channels + d] * at(h.v, s, d);
        }
        mean_slope += p[s] * slope[s];
      }
      for (size_t s = first; s <= t; ++s) {
        const double g = p[s] * (slope[s] - mean_slope) * h.scale;
        for (size_t d = 0; d < c.channels; ++d) {
          grad_q[t * c.channels + d] += g * at(h.k, s, d);
          grad_k[s * c.channels + d] += g * at(h.q, t, d);
        }
      }
    }
  }
};

void expect_near(const Values& actual, const std::vector<double>& expected, const char* what, const Case& c) {
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 2e-5 * (1 + std::abs(expected[i])))
        << what << " " << i << ", tokens " << c.tokens << ", channels " << c.channels << ", window " << c.window;
  }
}

TEST(Attention, AgreesWithTheDefinition) {
  for (const size_t tokens : {1u, 2u, 5u, 23u, 24u, 25u, 47u, 64u, 130u}) {
    for (const size_t channels : {4u, 40u, 64u}) {
      for (const size_t window : {0u, 1u, 3u, 70u}) {
        const Case c{tokens, channels, window};
        const Values grad_y = random_values(tokens * channels, 2);
        const Result r = run(c, grad_y);
        const Reference expected(c, grad_y);
        expect_near(r.y, expected.y, "y", c);
        expect_near(r.lse, expected.lse, "lse", c);
        expect_near(r.grad_q, expected.grad_q, "grad_q", c);
        expect_near(r.grad_k, expected.grad_k, "grad_k", c);
        expect_near(r.grad_v, expected.grad_v, "grad_v", c);
      }
    }
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  Case c{40, 8, 0};
  for (float& x : c.qkv) x *= 100;
  const Result r = run(c, Values(40 * 8, 1.0f));
  for (const float y : r.y) ASSERT_TRUE(std::isfinite(y));
  for (const float g : r.grad_q) ASSERT_TRUE(std::isfinite(g));
}

// Row t depends on no later token: a longer document starts with the same bits.
TEST(Attention, LaterTokensChangeNoBit) {
  const Case full{60, 16, 0};
  Case part = full;
  part.tokens = 31;
  const Values y = run(full, Values(60 * 16, 1.0f)).y, y_part = run(part, Values(60 * 16, 1.0f)).y;
  for (size_t i = 0; i < y_part.size(); ++i) ASSERT_EQ(y_part[i], y[i]) << i;
}

TEST(Attention, TooLittleScratchIsOurBug) {
  const Case c{10, 8, 0};
  Values y(80), lse(10), scratch(attention_scratch(10, 8) - 1);
  EXPECT_THROW(attention_head(c.head(), y.data(), 8, lse, scratch), InternalError);
}

}  // namespace
}  // namespace headrace::kernel
