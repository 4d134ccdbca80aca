#include "headrace/device/pace.h"

#include <time.h>

#include <cerrno>

namespace headrace::device {
namespace {

constexpr int64_t kSecond_ns = 1'000'000'000;

int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * kSecond_ns + now.tv_nsec;
}

// Returns the time at which the thread runs again: `now` itself where nothing is to be waited for.
int64_t sleep_until(int64_t due_ns, int64_t now) {
  if (now >= due_ns) return now;
  const timespec due{.tv_sec = due_ns / kSecond_ns, .tv_nsec = due_ns % kSecond_ns};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) == EINTR) {
  }
  return now_ns();
}

}  // namespace

void Pace::begin() {
  const int64_t now = now_ns();
  time_.waited(sleep_until(time_.begin(now), now));
}

void Pace::moved(int64_t bytes) {
  const int64_t now = now_ns();
  time_.waited(sleep_until(time_.moved(bytes, now), now));
}

}  // namespace headrace::device
