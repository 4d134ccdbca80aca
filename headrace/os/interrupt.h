// Ctrl-C and SIGTERM as a flag that the run looks at between steps; SIGUSR1 as a request to save.
#pragma once

#include <array>
#include <csignal>

namespace headrace::os {

// While it lives, the first SIGINT or SIGTERM only sets the flag; a second one of the same kind kills as usual.
// SIGUSR1 may come as often as it likes. Handlers belong to the process, so at most one guard may live at a time: a
// second throws InternalError.
class InterruptGuard {
 public:
  InterruptGuard();
  // Restores the handlers found, and clears the flag.
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Any thread.
  static bool requested() noexcept;
  // Whether SIGUSR1 came since the last call.
  static bool take_save_request() noexcept;

 private:
  std::array<struct sigaction, 2> found_{};
  struct sigaction found_save_ {};
};

}  // namespace headrace::os
