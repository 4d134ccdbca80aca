#include "headrace/data/line_reader.h"

#include <gtest/gtest.h>

#include "headrace/base/rng.h"

namespace headrace::data {
namespace {

std::vector<std::string> lines_of(std::string_view text, int64_t max_line_bytes = 1 << 20) {
  LineReader reader(bytes_in_memory(text, "a.txt"), max_line_bytes);
  std::vector<std::string> lines;
  while (const auto line = reader.next()) {
    lines.push_back(reader.too_long() ? "(too long)" : std::string(*line));
    EXPECT_EQ(reader.number(), static_cast<int64_t>(lines.size()));
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LineReader, TakesOffLineEndsAndByteOrderMark) {
  EXPECT_EQ(lines_of(""), Lines{});
  EXPECT_EQ(lines_of("\n"), Lines{""});
  EXPECT_EQ(lines_of("a"), Lines{"a"});
  EXPECT_EQ(lines_of("a\nb\n"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("a\r\n\r\nb"), (Lines{"a", "", "b"}));
  EXPECT_EQ(lines_of("\xEF\xBB\xBF{}\n\xEF\xBB\xBFx"), (Lines{"{}", "\xEF\xBB\xBFx"}));
}

TEST(LineReader, LinesOfAnyLengthAcrossBlocks) {
  Rng rng(7);
  std::string text;
  Lines expected;
  for (int i = 0; i < 200; ++i) {
    expected.emplace_back(rng.below(3000), static_cast<char>('a' + i % 26));
    text += expected.back() + "\n";
  }
  EXPECT_EQ(lines_of(text), expected);
}

TEST(LineReader, HugeLinesAreReadPastAndCounted) {
  const std::string text = "short\n" + std::string(500000, 'x') + "\nafter\n" + std::string(101, 'y');
  EXPECT_EQ(lines_of(text, 100), (Lines{"short", "(too long)", "after", "(too long)"}));
  EXPECT_EQ(lines_of(std::string(100, 'x') + "\n", 100), Lines{std::string(100, 'x')});
}

}  // namespace
}  // namespace headrace::data
