// RMS and layer normalisation of rows, forward and backward. Shapes: N rows of C channels, contiguous fp32.
// Pure functions of their spans; safe from any thread on disjoint spans. A row is computed alone and a channel's
// parameter gradient is summed over rows in a fixed order, so neither splitting the rows nor splitting the channels
// over threads changes a bit. (The vector width may.) All throw InternalError when lengths disagree.
#pragma once

#include <cstddef>
#include <span>

namespace headrace::kernel {

// y = x * inverse * weight_C with inverse_N = 1 / sqrt(mean(x^2) + epsilon), written too.
void rms_norm(std::span<const float> x_NC, std::span<const float> weight_C, float epsilon, std::span<float> y_NC,
              std::span<float> inverse_N);

// y once more from the inverse of the first time: bitwise equal to it.
void rms_norm_again(std::span<const float> x_NC, std::span<const float> weight_C, std::span<const float> inverse_N,
                    std::span<float> y_NC);

// grad_x += the gradient of x.
void rms_norm_backward(std::span<const float> grad_y_NC, std::span<const float> x_NC, std::span<const float> weight_C,
                       std::span<const float> inverse_N, std::span<float> grad_x_NC);

struct Affine {
  std::span<const float> weight_C, bias_C;
};

// Of each row: its mean and 1 / sqrt(variance + epsilon).
template <class Float>
struct RowMoments {
  std::span<Float> mean_N, inverse_N;
};

// y = (x - mean) * inverse * weight_C + bias_C; the moments are written too.
void layer_norm(std::span<const float> x_NC, const Affine& affine, float epsilon, std::span<float> y_NC,
                const RowMoments<float>& moments);

void layer_norm_again(std::span<const float> x_NC, const Affine& affine, const RowMoments<const float>& moments,
                      std::span<float> y_NC);

void layer_norm_backward(std::span<const float> grad_y_NC, std::span<const float> x_NC, std::span<const float> weight_C,
                         const RowMoments<const float>& moments, std::span<float> grad_x_NC);

// Channels [begin, end) of a [N, C] matrix: what one thread sums.
struct Channels {
  size_t begin, end;
  size_t total;  // C
};

// grad_weight_C[c] += sum over rows of grad_y * (x - mean) * inverse, for the channels given. mean_N empty: 0.
void add_norm_weight_gradient(std::span<const float> grad_y_NC, std::span<const float> x_NC,
                              std::span<const float> mean_N, std::span<const float> inverse_N, Channels channels,
                              std::span<float> grad_weight_C);

// sum_C[c] += sum over rows of values_NC, for the channels given.
void add_row_sums(std::span<const float> values_NC, Channels channels, std::span<float> sum_C);

}  // namespace headrace::kernel
