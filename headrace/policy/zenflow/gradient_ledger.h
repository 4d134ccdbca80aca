// What a block's window is made of: which buffer of the host each step's deferred gradient lies in, and what it is
// multiplied with in the window's mean. A running sum adds each gradient as it comes; slots keep them apart until the
// update sums them. Both give the same bits. Plain bookkeeping; one owner, the trainer thread.
#pragma once

#include <cstdint>
#include <vector>

namespace headrace::policy::zenflow {

enum class WindowSum {
  kSlots,   // each step's gradient has a buffer until its window's update has read it
  kRunning  // two sums in fp32: one grows while the other is read
};

// Where a step's gradient goes.
struct Arrival {
  int32_t slot = 0;       // kSlots: the buffer it arrives in; kRunning: the sum it is added to, 0 or 1
  bool is_first = false;  // of its window
};

// (sum of gradient[slot] * scale over the parts, in this order) * mean_scale is the mean gradient of the window,
// weighted by trained tokens, each step clipped by its own factor. A running sum is one part of scale 1.
struct WindowParts {
  struct Part {
    int32_t slot = 0;
    float scale = 1;
  };
  std::vector<Part> parts;
  float mean_scale = 1;
};

class GradientLedger {
 public:
  // `num_slots` with kSlots >= twice the longest window, so that no slot is in use by two windows at once.
  GradientLedger(WindowSum sum, int32_t num_slots) : sum_(sum), num_slots_(num_slots) {}

  // The buffer of the step that comes next.
  Arrival arrival() const;
  // What its gradient is multiplied with, once its clip factor is known: relative to the tokens of the window's first
  // step, so that a window of one step multiplies with the clip factor and nothing else.
  float scale(float clip_factor, int64_t trained_tokens) const;
  // Enters the step. trained_tokens > 0.
  void enter(float clip_factor, int64_t trained_tokens);
  // Ends the window with the step entered last.
  WindowParts end_window();

  // The window so far, as end_window() would give it. Empty parts when it has no steps.
  WindowParts so_far() const;
  // [tokens] of its first step, 0 when it has none, and of all its steps.
  int64_t first_tokens() const { return steps_.empty() ? 0 : steps_.front().tokens; }
  int64_t tokens() const;
  // Before the first step: a window whose gradients so far are summed in the first buffer, with scale 1.
  void restore(int64_t first_tokens, int64_t tokens);

 private:
  struct Step {
    int32_t slot;
    float scale;
    int64_t tokens;
  };
  const WindowSum sum_;
  const int32_t num_slots_;
  int32_t next_slot_ = 0;      // kSlots: of the step that comes next; kRunning: the sum of this window
  std::vector<Step> steps_;    // of the window under way
  int64_t tokens_of_sum_ = 0;  // of a restored window, besides those of its first step
};

}  // namespace headrace::policy::zenflow
