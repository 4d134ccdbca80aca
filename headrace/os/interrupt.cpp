#include "headrace/os/interrupt.h"

#include <atomic>

#include "headrace/base/errors.h"

namespace headrace::os {
namespace {

constexpr std::array<int, 2> kSignals{SIGINT, SIGTERM};

// A signal handler can reach nothing but globals.
std::atomic<bool> interrupt_seen{false};
std::atomic<bool> save_asked{false};
std::atomic<bool> guard_lives{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void note_interrupt(int) { interrupt_seen = true; }
void note_save(int) { save_asked = true; }

}  // namespace

InterruptGuard::InterruptGuard() {
  if (guard_lives.exchange(true)) throw InternalError("os.interrupt", "a second InterruptGuard while one lives.");
  interrupt_seen = save_asked = false;
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  // RESETHAND: the second signal of the kind finds the default, which kills. RESTART: reads and writes go on.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &found_[i]);
  action.sa_handler = note_save;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &action, &found_save_);
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &found_[i], nullptr);
  ::sigaction(SIGUSR1, &found_save_, nullptr);
  interrupt_seen = save_asked = false;
  guard_lives = false;
}

bool InterruptGuard::requested() noexcept { return interrupt_seen; }

bool InterruptGuard::take_save_request() noexcept { return save_asked.exchange(false); }

}  // namespace headrace::os
