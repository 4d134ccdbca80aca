#include "headrace/base/rng.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace headrace {
namespace {

uint64_t splitmix(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

Rng::Rng(uint64_t seed) : state_{} {
  for (uint64_t& word : state_) word = splitmix(seed);
}

uint64_t Rng::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Rng::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

double Rng::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

uint64_t Rng::below(uint64_t bound) {
  const uint64_t limit = -bound % bound;  // 2^64 mod bound: draws under it would favour small results
  uint64_t draw = next();
  while (draw < limit) draw = next();
  return draw % bound;
}

uint64_t mix_seed(uint64_t seed, uint64_t stream) {
  uint64_t state = seed ^ (stream * 0xd1342543de82ef95ULL + 0x632be59bd9b4e019ULL);
  return splitmix(state);
}

}  // namespace headrace
