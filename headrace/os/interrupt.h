// Ctrl-C and SIGTERM as a flag that the run looks at between steps.
#pragma once

#include <array>
#include <csignal>

namespace headrace::os {

// While it lives, the first SIGINT or SIGTERM only sets the flag; a second one of the same kind kills as usual.
// Handlers belong to the process, so at most one guard may live at a time: a second throws InternalError.
class InterruptGuard {
 public:
  InterruptGuard();
  // Restores the handlers found, and clears the flag.
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Any thread.
  static bool requested() noexcept;

 private:
  std::array<struct sigaction, 2> found_{};
};

}  // namespace headrace::os
