// Seeded random numbers that are the same on every machine and every standard library: xoshiro256** seeded by
// splitmix64 (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2018). One owner; not shared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace headrace {

class Rng {
 public:
  using State = std::array<uint64_t, 4>;

  explicit Rng(uint64_t seed);
  explicit Rng(const State& state) : state_(state) {}

  uint64_t next();
  // Uniform in [0, 1), 53 bits.
  double uniform();
  // Standard normal (Box-Muller, two draws a value, so that the state alone says where it stands).
  double normal();
  // Uniform in [0, bound); bound >= 1. Unbiased.
  uint64_t below(uint64_t bound);
  const State& state() const { return state_; }

  // Fisher-Yates in place.
  template <typename Container>
  void shuffle(Container& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  State state_;
};

// A seed for a sub-stream: the same pair always gives the same seed, neighbours give unrelated ones.
uint64_t mix_seed(uint64_t seed, uint64_t stream);

}  // namespace headrace
