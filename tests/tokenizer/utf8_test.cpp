#include "headrace/tokenizer/utf8.h"

#include <gtest/gtest.h>

namespace headrace::tokenizer {
namespace {

TEST(Utf8, RoundTripsEveryScalarValue) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    ASSERT_EQ(utf8_front(text), static_cast<int>(text.size())) << c;
    ASSERT_EQ(code_point_at(text.data()).value, c);
    ASSERT_EQ(sequence_length(text[0]), text.size());
    for (size_t cut = 1; cut < text.size(); ++cut) ASSERT_EQ(utf8_front(std::string_view(text).substr(0, cut)), 0) << c;
  }
}

TEST(Utf8, FindsTheFirstIllFormedByte) {
  const std::string good = "0123456789 \xC3\xA9\xE4\xB8\x96\xF0\x9F\x98\x80 tail of ascii";
  EXPECT_EQ(first_invalid_utf8(good), good.size());
  EXPECT_EQ(first_invalid_utf8(""), 0u);
  for (const std::string bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                                "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE4\xB8", "\xC3(", "\xE4\xB8("}) {
    EXPECT_EQ(first_invalid_utf8(good + bad + good), good.size()) << bad.size();
    EXPECT_EQ(first_invalid_utf8(good + bad), good.size()) << bad.size();
  }
}

}  // namespace
}  // namespace headrace::tokenizer
