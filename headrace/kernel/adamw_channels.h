// AdamW by channels (channels.h), for ZenFlow (arXiv 2505.12242): each channel counts its own updates for the bias
// correction, and the gradient may be the mean over a window of steps, summed in registers within the one pass. The
// arithmetic of an element is adamw.h's: with one slot, mean_scale 1 and the same counter, the same bits. Nor do the
// cut into lines, alignment, threads or the vector width change a bit. Masters are fp32.
// Pure functions of their spans; safe from any thread on disjoint lines.
// All throw InternalError when lengths or shapes disagree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/kernel/adamw.h"
#include "headrace/kernel/channels.h"

namespace headrace::kernel {

// Like AdamWStep, but for what differs between channels.
struct ChannelAdamW {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  float keep = 1;  // multiplied into the master: 1 - learning_rate * weight_decay, or its product over a window's steps
};

// By position, in fp32.
struct BiasCorrections {
  std::vector<float> step_size;          // learning_rate / (1 - beta1^t)
  std::vector<float> second_correction;  // 1 / sqrt(1 - beta2^t)
};

// updates: by position, which update of the channel this is, >= 1. Computed in double, each rounded once.
BiasCorrections bias_corrections(const ChannelAdamW& adamw, std::span<const int64_t> updates);

// The gradient of one step of a window, and its clip factor.
struct WindowSlot {
  Gradient gradient;
  float scale = 1;
};

// Stands for (((g0 * s0) + g1 * s1) + ...) * mean_scale, each product and sum rounded to fp32. At least one slot.
struct WindowGradient {
  std::span<const WindowSlot> slots;
  float mean_scale = 1;  // 1 / the number of steps, for a mean
};

// Compact [lines, line_width], as are the gradients: the chosen lines only.
struct CompactState {
  std::span<float> master, m, v;
};

// A master in place in its whole matrix, at `channels`; m, v and the gradients compact: the chosen lines only.
struct SelectedState {
  std::span<float> matrix;
  std::span<const int32_t> channels;
  std::span<float> m, v;
};

// Updates every element of the lines once. The corrections are those of all chosen channels; where channels are rows,
// line i takes the correction at position i.
void adamw_update_channels(const CompactState& state, const WindowGradient& gradient, const MatrixShape& shape,
                           Lines lines, const BiasCorrections& corrections, const ChannelAdamW& adamw);

// The same bits. No other element of the matrix is touched.
void adamw_update_selected(const SelectedState& state, const WindowGradient& gradient, const MatrixShape& shape,
                           Lines lines, const BiasCorrections& corrections, const ChannelAdamW& adamw);

// The running sum of a window: sum = gradient * scale for its first step, else sum + gradient * scale. Given to an
// update as its one slot with scale 1, it gives the bits that the slots give.
void accumulate_gradient(std::span<float> sum, const Gradient& gradient, float scale, bool is_first);

}  // namespace headrace::kernel
