#include "headrace/tokenizer/nfc.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "headrace/base/rng.h"
#include "headrace/tokenizer/utf8.h"

namespace headrace::tokenizer {
namespace {

std::string whole_nfc(std::string_view text) {
  std::string out;
  size_t done = 0;
  for (auto span = next_composing_span(text, 0); span.begin < text.size(); span = next_composing_span(text, done)) {
    out += text.substr(done, span.begin - done);
    out += nfc(text.substr(span.begin, span.end - span.begin));
    done = span.end;
  }
  return out.append(text.substr(done));
}

TEST(Nfc, PiecewiseEqualsTheWholeByUtf8proc) {
  // Marks, Hangul, Indic vowels and their bases: all in Unicode long enough for both tables to know them.
  constexpr std::pair<uint32_t, uint32_t> kRanges[] = {
      {0x41, 0x7a},     {0xc0, 0x17f},  {0x300, 0x345}, {0x1100, 0x1112}, {0x1161, 0x1175}, {0x11a8, 0x11c2},
      {0xac00, 0xac60}, {0x915, 0x94d}, {0x9c7, 0x9d7}, {0x5b0, 0x5ea},   {0x1e00, 0x1eff}, {0x308, 0x316}};
  Rng rng(3);
  for (int round = 0; round < 30000; ++round) {
    std::string text;
    for (uint64_t i = 1 + rng.below(10); i > 0; --i) {
      const auto [low, high] = kRanges[rng.below(std::size(kRanges))];
      append_utf8(text, low + static_cast<uint32_t>(rng.below(high - low + 1)));
    }
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> want(
        utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str())), &std::free);
    ASSERT_EQ(whole_nfc(text), reinterpret_cast<const char*>(want.get())) << "seed 3, round " << round;
  }
}

TEST(Nfc, AMegabyteOfMarksTakesNoQuadraticTime) {
  std::string text = "e";
  while (text.size() < 1'000'000) text += text.size() % 4 == 1 ? "\xCC\x81" : "\xCC\xA3";
  EXPECT_EQ(nfc(text).size(), text.size());  // e and the dot below become one character of three bytes
}

TEST(Nfc, LeavesMarksAloneThatTheLibraryDoesNotKnow) {
  // U+1DF6 (class 232) before U+1DEC (230): current Unicode swaps them, the library's tables are older.
  const std::string text = "x\xE1\xB7\xB6\xE1\xB7\xAC";
  EXPECT_EQ(whole_nfc(text), text);
}

TEST(Nfc, PlainTextNeedsNothing) {
  const std::string text = "plain, caf\xC3\xA9 \xE4\xB8\x96 \xF0\x9F\x98\x80";
  EXPECT_EQ(next_composing_span(text, 0).begin, text.size());
}

}  // namespace
}  // namespace headrace::tokenizer
