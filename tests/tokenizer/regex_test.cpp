#include "headrace/tokenizer/regex.h"

#include <gtest/gtest.h>

#include "headrace/base/errors.h"

namespace headrace::tokenizer {
namespace {

TEST(RegexSyntax, RefusesByNameWhatTheEnginesReadDifferently) {
  const std::pair<const char*, const char*> refused[] = {{R"(^a)", "an anchor"},
                                                         {R"(a$)", "an anchor"},
                                                         {R"(\w+)", R"(\w)"},
                                                         {R"(\bx)", R"(\b)"},
                                                         {R"(\h)", R"(\h)"},
                                                         {R"([a-z&&[^x]])", "intersection"},
                                                         {R"([[:alpha:]])", "class within a class"},
                                                         {R"((?<n>a))", "a group"},
                                                         {R"((?i)a)", "a group"},
                                                         {R"(a{2}?)", "brace"},
                                                         {R"(a{,3})", "brace"},
                                                         {R"((?i:ss))", "fold"},
                                                         {R"((?i:\p{Lu}))", "property"},
                                                         {R"(\p{^L})", "property"},
                                                         {R"((*UTF)a)", "verb"},
                                                         {R"(\1)", R"(\1)"},
                                                         {R"([)", "without end"},
                                                         {R"(a])", "bracket"},
                                                         {R"(a\)", "backslash"},
                                                         {R"([\S])", R"(\S)"}};
  for (const auto& [pattern, what] : refused) {
    try {
      (void)to_pcre2(pattern, "f.json");
      ADD_FAILURE() << pattern << " was accepted";
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << pattern << ": " << error.what();
    }
  }
}

TEST(Regex, NamesAPatternThatIsWrong) {
  EXPECT_THROW(Regex::compile("(a", "f.json"), DataError);
  EXPECT_THROW(Regex::compile(R"(\p{Klingon})", "f.json"), DataError);
  EXPECT_THROW(Regex::compile(std::string(5000, 'a'), "f.json"), DataError);
  EXPECT_THROW(Regex::compile(std::string(100, '(') + "a" + std::string(100, ')'), "f.json"), DataError);
}

TEST(Regex, SpaceIsWhiteSpaceAndNotMore) {
  const Regex regex = Regex::compile(R"(\s)", "f.json");
  RegexMemory memory;
  EXPECT_TRUE(regex.find("a\xE3\x80\x80", 0, memory).has_value());   // U+3000
  EXPECT_FALSE(regex.find("a\xE1\xA0\x8E", 0, memory).has_value());  // U+180E has not been one since Unicode 6.3
}

TEST(Regex, GivesUpWithAnErrorNotForEver) {
  const Regex regex = Regex::compile("(?:a+)+[bd]", "f.json");
  RegexMemory memory;
  EXPECT_THROW((void)regex.find(std::string(60, 'a') + "c", 0, memory), DataError);
}

}  // namespace
}  // namespace headrace::tokenizer
