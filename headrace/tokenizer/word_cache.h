// Ids of short words met before: most words of a text are. One line of memory a word, no chains, newer words push out
// older ones. One thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace headrace::tokenizer {

class WordCache {
 public:
  static constexpr size_t kMaxWord = 30;  // [bytes]
  static constexpr size_t kMaxIds = 8;

  struct alignas(64) Line {
    uint8_t length = 0;  // 0: empty
    uint8_t count = 0;
    std::array<char, kMaxWord> text{};
    std::array<int32_t, kMaxIds> ids{};
  };

  // The line where `word` (1 to kMaxWord bytes) is or would be.
  Line& line_of(std::string_view word) {
    if (lines_.empty()) lines_.resize(kLines);
    return lines_[hash(word) & (kLines - 1)];
  }
  static bool holds(const Line& line, std::string_view word) {
    return line.length == word.size() && std::memcmp(line.text.data(), word.data(), word.size()) == 0;
  }
  static void store(Line& line, std::string_view word, std::span<const int32_t> ids) {
    line.length = static_cast<uint8_t>(word.size());
    line.count = static_cast<uint8_t>(ids.size());
    std::copy(word.begin(), word.end(), line.text.begin());
    std::copy(ids.begin(), ids.end(), line.ids.begin());
  }

 private:
  static constexpr size_t kLines = 1 << 15;  // 2 MiB a thread

  static uint64_t load(const char* p, size_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, p, bytes);
    return value;
  }
  // Reads the word in up to four overlapping pieces and mixes them by multiplication.
  static size_t hash(std::string_view word) {
    const char* p = word.data();
    const size_t n = word.size();
    uint64_t h = n * 0x9E3779B97F4A7C15u;
    const auto mix = [&h](uint64_t value) { h = (h ^ value) * 0xD6E8FEB86659FD93u, h ^= h >> 32; };
    if (n >= 16) {
      mix(load(p, 8));
      mix(load(p + 8, 8));
      mix(load(p + n - 16, 8));
      mix(load(p + n - 8, 8));
    } else if (n >= 8) {
      mix(load(p, 8));
      mix(load(p + n - 8, 8));
    } else if (n >= 4) {
      mix(load(p, 4) | load(p + n - 4, 4) << 32);
    } else {
      mix(load(p, 1) | load(p + n / 2, 1) << 8 | load(p + n - 1, 1) << 16);
    }
    return h;
  }

  std::vector<Line> lines_;
};

}  // namespace headrace::tokenizer
