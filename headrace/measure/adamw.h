// How fast this machine updates parameters: every variant of the AdamW kernel beside a triad of the same bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "headrace/kernel/bf16.h"

namespace headrace::measure {

struct AdamWSetting {
  int64_t parameters = int64_t{32} << 20;  // rounded up to whole blocks of 32 a thread; far more than the caches hold
  int repeats = 9;                         // timed rounds after one that is not
  std::vector<int> threads = {1, 2};
};

// Flat arrays of one length, aligned to 64 bytes, in pages as large as the system gives.
struct AdamWArrays {
  std::span<float> master, m, v, gradient;
  std::span<kernel::Bf16> narrow_gradient, weight;
  std::span<int16_t> lower;
};

// Somebody else's AdamW, timed in the same rounds on the same arrays. Reads and writes `bytes_per_param`.
struct Contender {
  std::string variant;
  double bytes_per_param;
  std::function<void(const AdamWArrays& arrays, int threads)> step;
};

struct AdamWRow {
  std::string variant;
  int threads;
  double bytes_per_param;  // read and written by one update
  double mparam_per_s;     // median of the rounds
  double mparam_per_s_quartiles[2];
  double gb_per_s;        // 1e9 bytes
  double share_of_triad;  // median over rounds of this over the triad's bytes a second in the same round
  double triad_gb_per_s;  // median; the faster of the triad with and without prefetch
};

// Times everything in turn, round after round. Takes 22 bytes of memory a parameter; blocks, starts pinned threads and
// ends them. Throws ConfigError when the setting has no parameters, rounds or threads, CapacityError without memory.
std::vector<AdamWRow> adamw(const AdamWSetting& setting, const std::vector<Contender>& contenders);

}  // namespace headrace::measure
