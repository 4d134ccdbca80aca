#include "headrace/kernel/norm.h"

#include <cmath>
#include <string>

#include "headrace/base/errors.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headrace/kernel/norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headrace::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;

// Calls body(tag, position) for whole vectors, then element by element for the rest.
template <class Body>
HWY_INLINE void for_each(size_t count, const Body& body) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) body(d, i);
  for (; i < count; ++i) body(One(), i);
}

// Sum over i of term(tag, i). Two vectors of partial sums hide the latency of addition.
template <class Term>
HWY_INLINE float sum_of(size_t count, const Term& term) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  auto even = hn::Zero(d), odd = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    even = hn::Add(even, term(d, i));
    odd = hn::Add(odd, term(d, i + lanes));
  }
  if (i + lanes <= count) {
    even = hn::Add(even, term(d, i));
    i += lanes;
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < count; ++i) sum += hn::GetLane(term(One(), i));
  return sum;
}

// y = x * inverse * weight.
void rms_scale(const float* x, const float* weight, float inverse, size_t count, float* y) {
  for_each(count, [&](auto d, size_t i) {
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, inverse)), hn::LoadU(d, weight + i)), d, y + i);
  });
}

void rms_rows(const float* x, const float* weight, float epsilon, size_t rows, size_t count, float* y, float* inverse) {
  for (size_t row = 0; row < rows; ++row, x += count, y += count) {
    const float squares = sum_of(count, [&](auto d, size_t i) {
      const auto v = hn::LoadU(d, x + i);
      return hn::Mul(v, v);
    });
    inverse[row] = 1.0f / std::sqrt(squares / static_cast<float>(count) + epsilon);
    rms_scale(x, weight, inverse[row], count, y);
  }
}

void rms_again_rows(const float* x, const float* weight, const float* inverse, size_t rows, size_t count, float* y) {
  for (size_t row = 0; row < rows; ++row) rms_scale(x + row * count, weight, inverse[row], count, y + row * count);
}

// With u = grad_y * weight: grad_x = inverse * u - x * inverse^3 * mean(u * x).
void rms_backward_rows(const float* grad_y, const float* x, const float* weight, const float* inverse, size_t rows,
                       size_t count, float* grad_x) {
  for (size_t row = 0; row < rows; ++row, grad_y += count, x += count, grad_x += count) {
    const float dot = sum_of(count, [&](auto d, size_t i) {
      return hn::Mul(hn::Mul(hn::LoadU(d, grad_y + i), hn::LoadU(d, weight + i)), hn::LoadU(d, x + i));
    });
    const float r = inverse[row], pull = r * r * r * (dot / static_cast<float>(count));
    for_each(count, [&](auto d, size_t i) {
      const auto u = hn::Mul(hn::LoadU(d, grad_y + i), hn::LoadU(d, weight + i));
      const auto own = hn::Sub(hn::Mul(u, hn::Set(d, r)), hn::Mul(hn::LoadU(d, x + i), hn::Set(d, pull)));
      hn::StoreU(hn::Add(hn::LoadU(d, grad_x + i), own), d, grad_x + i);
    });
  }
}

void layer_scale(const float* x, const float* weight, const float* bias, float mean, float inverse, size_t count,
                 float* y) {
  for_each(count, [&](auto d, size_t i) {
    const auto normal = hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, inverse));
    hn::StoreU(hn::Add(hn::Mul(normal, hn::LoadU(d, weight + i)), hn::LoadU(d, bias + i)), d, y + i);
  });
}

void layer_rows(const float* x, const float* weight, const float* bias, float epsilon, size_t rows, size_t count,
                float* y, float* mean, float* inverse) {
  const auto channels = static_cast<float>(count);
  for (size_t row = 0; row < rows; ++row, x += count, y += count) {
    mean[row] = sum_of(count, [&](auto d, size_t i) { return hn::LoadU(d, x + i); }) / channels;
    const float squares = sum_of(count, [&](auto d, size_t i) {
      const auto v = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean[row]));
      return hn::Mul(v, v);
    });
    inverse[row] = 1.0f / std::sqrt(squares / channels + epsilon);
    layer_scale(x, weight, bias, mean[row], inverse[row], count, y);
  }
}

void layer_again_rows(const float* x, const float* weight, const float* bias, const float* mean, const float* inverse,
                      size_t rows, size_t count, float* y) {
  for (size_t row = 0; row < rows; ++row) {
    layer_scale(x + row * count, weight, bias, mean[row], inverse[row], count, y + row * count);
  }
}

// With u = grad_y * weight and n the normalised x: grad_x = inverse * (u - mean(u) - n * mean(u * n)).
void layer_backward_rows(const float* grad_y, const float* x, const float* weight, const float* mean,
                         const float* inverse, size_t rows, size_t count, float* grad_x) {
  const auto channels = static_cast<float>(count);
  for (size_t row = 0; row < rows; ++row, grad_y += count, x += count, grad_x += count) {
    const float m = mean[row], r = inverse[row];
    const auto u_of = [&](auto d, size_t i) { return hn::Mul(hn::LoadU(d, grad_y + i), hn::LoadU(d, weight + i)); };
    const auto n_of = [&](auto d, size_t i) {
      return hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, m)), hn::Set(d, r));
    };
    const float mean_u = sum_of(count, u_of) / channels;
    const float mean_un = sum_of(count, [&](auto d, size_t i) { return hn::Mul(u_of(d, i), n_of(d, i)); }) / channels;
    for_each(count, [&](auto d, size_t i) {
      const auto pulled = hn::Sub(hn::Sub(u_of(d, i), hn::Set(d, mean_u)), hn::Mul(n_of(d, i), hn::Set(d, mean_un)));
      hn::StoreU(hn::Add(hn::LoadU(d, grad_x + i), hn::Mul(pulled, hn::Set(d, r))), d, grad_x + i);
    });
  }
}

// Rows whose terms are added into one partial sum before it joins the total: keeps the rounding of long sums small.
constexpr size_t kPartialRows = 32;

// total[i] += sum over rows of term(tag, row, i), for i in [begin, end).
template <class Term>
HWY_INLINE void add_over_rows(size_t rows, size_t begin, size_t end, float* total, const Term& term) {
  for_each(end - begin, [&](auto d, size_t offset) {
    const size_t i = begin + offset;
    auto sum = hn::Zero(d);
    for (size_t first = 0; first < rows; first += kPartialRows) {
      auto partial = hn::Zero(d);
      const size_t last = HWY_MIN(first + kPartialRows, rows);
      for (size_t row = first; row < last; ++row) partial = hn::Add(partial, term(d, row, i));
      sum = hn::Add(sum, partial);
    }
    hn::StoreU(hn::Add(hn::LoadU(d, total + i), sum), d, total + i);
  });
}

void weight_gradient(const float* grad_y, const float* x, const float* mean, const float* inverse, size_t rows,
                     const Channels& channels, float* grad_weight) {
  add_over_rows(rows, channels.begin, channels.end, grad_weight, [&](auto d, size_t row, size_t i) {
    auto v = hn::LoadU(d, x + row * channels.total + i);
    if (mean != nullptr) v = hn::Sub(v, hn::Set(d, mean[row]));
    return hn::Mul(hn::LoadU(d, grad_y + row * channels.total + i), hn::Mul(v, hn::Set(d, inverse[row])));
  });
}

void row_sums(const float* values, size_t rows, const Channels& channels, float* sum) {
  add_over_rows(rows, channels.begin, channels.end, sum,
                [&](auto d, size_t row, size_t i) { return hn::LoadU(d, values + row * channels.total + i); });
}

}  // namespace headrace::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernel {
namespace {

HWY_EXPORT(rms_rows);
HWY_EXPORT(rms_again_rows);
HWY_EXPORT(rms_backward_rows);
HWY_EXPORT(layer_rows);
HWY_EXPORT(layer_again_rows);
HWY_EXPORT(layer_backward_rows);
HWY_EXPORT(weight_gradient);
HWY_EXPORT(row_sums);

void expect(bool holds, const char* verb, size_t elements, size_t channels) {
  if (holds) return;
  throw InternalError(verb, std::to_string(elements) + " elements and " + std::to_string(channels) +
                                " channels do not fit the other spans.");
}

}  // namespace

void rms_norm(std::span<const float> x_NC, std::span<const float> weight_C, float epsilon, std::span<float> y_NC,
              std::span<float> inverse_N) {
  const size_t channels = weight_C.size(), rows = inverse_N.size();
  expect(x_NC.size() == rows * channels && y_NC.size() == x_NC.size(), "kernel.rms_norm", x_NC.size(), channels);
  HWY_DYNAMIC_DISPATCH(rms_rows)
  (x_NC.data(), weight_C.data(), epsilon, rows, channels, y_NC.data(), inverse_N.data());
}

void rms_norm_again(std::span<const float> x_NC, std::span<const float> weight_C, std::span<const float> inverse_N,
                    std::span<float> y_NC) {
  const size_t channels = weight_C.size(), rows = inverse_N.size();
  expect(x_NC.size() == rows * channels && y_NC.size() == x_NC.size(), "kernel.rms_norm_again", x_NC.size(), channels);
  HWY_DYNAMIC_DISPATCH(rms_again_rows)
  (x_NC.data(), weight_C.data(), inverse_N.data(), rows, channels, y_NC.data());
}

void rms_norm_backward(std::span<const float> grad_y_NC, std::span<const float> x_NC, std::span<const float> weight_C,
                       std::span<const float> inverse_N, std::span<float> grad_x_NC) {
  const size_t channels = weight_C.size(), rows = inverse_N.size();
  expect(x_NC.size() == rows * channels && grad_y_NC.size() == x_NC.size() && grad_x_NC.size() == x_NC.size(),
         "kernel.rms_norm_backward", x_NC.size(), channels);
  HWY_DYNAMIC_DISPATCH(rms_backward_rows)
  (grad_y_NC.data(), x_NC.data(), weight_C.data(), inverse_N.data(), rows, channels, grad_x_NC.data());
}

void layer_norm(std::span<const float> x_NC, const Affine& affine, float epsilon, std::span<float> y_NC,
                const RowMoments<float>& moments) {
  const size_t channels = affine.weight_C.size(), rows = moments.inverse_N.size();
  expect(x_NC.size() == rows * channels && y_NC.size() == x_NC.size() && affine.bias_C.size() == channels &&
             moments.mean_N.size() == rows,
         "kernel.layer_norm", x_NC.size(), channels);
  HWY_DYNAMIC_DISPATCH(layer_rows)
  (x_NC.data(), affine.weight_C.data(), affine.bias_C.data(), epsilon, rows, channels, y_NC.data(),
   moments.mean_N.data(), moments.inverse_N.data());
}

void layer_norm_again(std::span<const float> x_NC, const Affine& affine, const RowMoments<const float>& moments,
                      std::span<float> y_NC) {
  const size_t channels = affine.weight_C.size(), rows = moments.inverse_N.size();
  expect(x_NC.size() == rows * channels && y_NC.size() == x_NC.size() && affine.bias_C.size() == channels &&
             moments.mean_N.size() == rows,
         "kernel.layer_norm_again", x_NC.size(), channels);
  HWY_DYNAMIC_DISPATCH(layer_again_rows)
  (x_NC.data(), affine.weight_C.data(), affine.bias_C.data(), moments.mean_N.data(), moments.inverse_N.data(), rows,
   channels, y_NC.data());
}

void layer_norm_backward(std::span<const float> grad_y_NC, std::span<const float> x_NC, std::span<const float> weight_C,
                         const RowMoments<const float>& moments, std::span<float> grad_x_NC) {
  const size_t channels = weight_C.size(), rows = moments.inverse_N.size();
  expect(x_NC.size() == rows * channels && grad_y_NC.size() == x_NC.size() && grad_x_NC.size() == x_NC.size() &&
             moments.mean_N.size() == rows,
         "kernel.layer_norm_backward", x_NC.size(), channels);
  HWY_DYNAMIC_DISPATCH(layer_backward_rows)
  (grad_y_NC.data(), x_NC.data(), weight_C.data(), moments.mean_N.data(), moments.inverse_N.data(), rows, channels,
   grad_x_NC.data());
}

void add_norm_weight_gradient(std::span<const float> grad_y_NC, std::span<const float> x_NC,
                              std::span<const float> mean_N, std::span<const float> inverse_N, Channels channels,
                              std::span<float> grad_weight_C) {
  const size_t rows = inverse_N.size();
  expect(x_NC.size() == rows * channels.total && grad_y_NC.size() == x_NC.size() &&
             grad_weight_C.size() == channels.total && channels.begin <= channels.end &&
             channels.end <= channels.total && (mean_N.empty() || mean_N.size() == rows),
         "kernel.add_norm_weight_gradient", x_NC.size(), channels.total);
  HWY_DYNAMIC_DISPATCH(weight_gradient)
  (grad_y_NC.data(), x_NC.data(), mean_N.empty() ? nullptr : mean_N.data(), inverse_N.data(), rows, channels,
   grad_weight_C.data());
}

void add_row_sums(std::span<const float> values_NC, Channels channels, std::span<float> sum_C) {
  const size_t rows = channels.total == 0 ? 0 : values_NC.size() / channels.total;
  expect(values_NC.size() == rows * channels.total && sum_C.size() == channels.total &&
             channels.begin <= channels.end && channels.end <= channels.total,
         "kernel.add_row_sums", values_NC.size(), channels.total);
  HWY_DYNAMIC_DISPATCH(row_sums)(values_NC.data(), rows, channels, sum_C.data());
}

}  // namespace headrace::kernel
#endif
