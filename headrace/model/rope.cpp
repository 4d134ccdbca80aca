#include "headrace/model/rope.h"
#include "headrace/tensor/torch.h"

#include <numbers>

namespace headrace::model {

at::Tensor inverse_frequencies(const config::Rope& rope, int64_t head_dim) {
  const at::Tensor exponents = at::arange(0, head_dim, 2, at::kLong).to(at::kFloat) / static_cast<double>(head_dim);
  const at::Tensor frequencies = 1.0 / at::pow(rope.theta, exponents);
  if (rope.type == config::RopeType::kLinear) return frequencies / rope.factor;
  if (rope.type != config::RopeType::kLlama3) return frequencies;
  // Long waves are stretched by `factor`, short ones kept, those between blended.
  const auto original = static_cast<double>(rope.original_positions);
  const double low_wavelength = original / rope.low_freq_factor, high_wavelength = original / rope.high_freq_factor;
  const at::Tensor wavelengths = 2.0 * std::numbers::pi / frequencies;
  const at::Tensor stretched = at::where(wavelengths > low_wavelength, frequencies / rope.factor, frequencies);
  const at::Tensor smooth =
      (original / wavelengths - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  const at::Tensor blended = (1.0 - smooth) * stretched / rope.factor + smooth * stretched;
  const at::Tensor is_between =
      at::logical_not(wavelengths < high_wavelength) * at::logical_not(wavelengths > low_wavelength);
  return at::where(is_between, blended, stretched);
}

std::pair<at::Tensor, at::Tensor> rotary_tables(const config::ModelShape& shape, const at::Tensor& positions_N) {
  if (shape.rope.type == config::RopeType::kNone) return {};
  const at::Tensor frequencies = inverse_frequencies(shape.rope, shape.head_dim).to(positions_N.device());
  const at::Tensor angles_NR = positions_N.to(at::kFloat).unsqueeze(1) * frequencies.unsqueeze(0);
  return {angles_NR.cos(), angles_NR.sin()};
}

}  // namespace headrace::model
