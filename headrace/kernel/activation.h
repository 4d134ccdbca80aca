// Activations of a feed-forward sublayer, forward and backward, fp32. Pure functions of their spans; safe from any
// thread on disjoint spans. Each element is computed alone: neither chunks nor threads change a bit.
// Exponentials are within 1e-6 relative. All throw InternalError when lengths disagree.
#pragma once

#include <cstddef>
#include <span>

namespace headrace::kernel {

// y = silu(gate) * up.
void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y);

// In place: gate and up become their gradients, grad_y becomes y (bitwise equal to the forward's).
void swiglu_backward(std::span<float> gate, std::span<float> up, std::span<float> grad_y);

// y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))).
void gelu_tanh(std::span<const float> x, std::span<float> y);

// In place: x becomes its gradient, grad_y becomes y.
void gelu_tanh_backward(std::span<float> x, std::span<float> grad_y);

}  // namespace headrace::kernel
