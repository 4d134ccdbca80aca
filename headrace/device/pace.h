// Slows the calling thread down to a set rate: a link's copy, or a host worker's pass over memory, so that a slower
// host or link is imitated by one that does the real work. Sleeps to absolute times; never spins.
//   pace.begin();  for each piece: { work on it; pace.moved(bytes it read and wrote); }
// One owner at a time; workers that share a rate get one each, with their share of it.
#pragma once

#include <cstdint>

#include "headrace/device/virtual_time.h"

namespace headrace::device {

class Pace {
 public:
  // Pieces of this size keep the pace smooth: the work is spread over the time it takes.
  static constexpr int64_t kPieceBytes = int64_t{2} << 20;

  // Throws ConfigError unless both figures are finite and >= 0.
  explicit Pace(const Rate& rate) : time_(rate) {}

  // A pass begins: sleeps for the latency.
  void begin();
  // Returns no earlier than a pass at this rate could have moved `bytes` more.
  void moved(int64_t bytes);

 private:
  VirtualTime time_;
};

}  // namespace headrace::device
