// When a link of a set rate would be done with what it was asked for. A thread that imitates the link wakes up late, at
// random; what it is late is taken off the next pass, so that many passes take together what the link would take, and
// only time that the caller really lets pass between them counts as idle.
// Pure arithmetic on nanoseconds of any clock; one owner.
#pragma once

#include <cstdint>

namespace headrace::device {

struct Rate {
  double bytes_per_s = 0;  // 0: as fast as memory allows
  double latency_s = 0;    // before the first byte of each pass
};

class VirtualTime {
 public:
  // Lateness beyond this is lost, as on a link that cannot keep its rate: nothing catches up for long.
  static constexpr int64_t kMaxLateness_ns = 10'000'000;

  // Throws ConfigError unless both are finite and >= 0.
  explicit VirtualTime(const Rate& rate);

  // A pass is asked for. Returns when its first byte may move.
  int64_t begin(int64_t now_ns);
  // That many more bytes have really moved. Returns when they may count as arrived.
  int64_t moved(int64_t bytes, int64_t now_ns);
  // The caller has waited for the time returned last, if it lay ahead.
  void waited(int64_t now_ns);

 private:
  const double bytes_per_s_;
  const int64_t latency_ns_;
  int64_t first_ns_ = 0;  // when this pass's first byte may move
  int64_t bytes_ = 0;     // of this pass so far
  int64_t due_ns_ = 0;
  int64_t lateness_ns_ = 0;
};

}  // namespace headrace::device
