// Matrices with a part of their channels chosen, for the tests of the kernels over channels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <ostream>
#include <vector>

#include "headrace/base/rng.h"
#include "headrace/kernel/channels.h"

namespace headrace::kernel {

inline std::vector<float> random_values(size_t count, uint64_t seed) {
  std::vector<float> values(count);
  Rng rng(seed);
  for (float& x : values) x = static_cast<float>(rng.normal() * std::exp(8 * (rng.uniform() - 0.5)));
  return values;
}

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

struct ChosenChannels {
  MatrixShape shape;
  std::vector<int32_t> important, deferred;

  size_t num_elements() const { return static_cast<size_t>(shape.num_elements()); }
};

inline std::ostream& operator<<(std::ostream& out, const ChosenChannels& chosen) {
  return out << (chosen.shape.axis == Axis::kColumns ? "columns of [" : "rows of [") << chosen.shape.rows << ", "
             << chosen.shape.width << "], " << chosen.important.size() << " important";
}

// num_important channels drawn at random; the others ascend but for some that have changed sides since.
inline ChosenChannels choose(const MatrixShape& shape, size_t num_important, Rng& rng) {
  std::vector<int32_t> all(static_cast<size_t>(shape.num_channels()));
  std::iota(all.begin(), all.end(), 0);
  rng.shuffle(all);
  ChosenChannels chosen{shape, {all.begin(), all.begin() + static_cast<int64_t>(num_important)}, {}};
  chosen.deferred.assign(all.begin() + static_cast<int64_t>(num_important), all.end());
  std::sort(chosen.deferred.begin(), chosen.deferred.end());
  if (chosen.deferred.empty()) return chosen;
  for (size_t i = 0; i < num_important; i += 3) {
    std::swap(chosen.important[i], chosen.deferred[rng.below(chosen.deferred.size())]);
  }
  return chosen;
}

// Both axes; widths about every boundary; none, one, a tenth, half and all important.
inline std::vector<ChosenChannels> many_choices(uint64_t seed) {
  Rng rng(seed);
  std::vector<ChosenChannels> choices;
  for (const Axis axis : {Axis::kColumns, Axis::kRows}) {
    for (const int64_t width : {1, 2, 3, 5, 8, 15, 33, 64, 257}) {
      const MatrixShape shape{static_cast<int64_t>(1 + rng.below(40)), width, axis};
      const auto channels = static_cast<size_t>(shape.num_channels());
      for (const size_t count : {size_t{0}, size_t{1}, channels / 10, channels / 2, channels}) {
        choices.push_back(choose(shape, count, rng));
      }
    }
  }
  return choices;
}

// [0, count) cut at random; some parts are empty.
inline std::vector<Lines> random_cuts(int64_t count, Rng& rng) {
  std::vector<Lines> parts;
  for (int64_t begin = 0; begin < count;) {
    const int64_t end = std::min(count, begin + static_cast<int64_t>(rng.below(7)));
    parts.push_back({begin, end});
    begin = end;
  }
  return parts;
}

// Where element i of compact line `line` lies in the matrix.
inline size_t place_of(const MatrixShape& shape, const std::vector<int32_t>& channels, int64_t line, int64_t i) {
  const bool is_column = shape.axis == Axis::kColumns;
  const int64_t row = is_column ? line : channels[static_cast<size_t>(line)];
  const int64_t column = is_column ? channels[static_cast<size_t>(i)] : i;
  return static_cast<size_t>(row * shape.width + column);
}

}  // namespace headrace::kernel
