#include "tests/house/walls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

namespace headrace::house {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string repeat(const std::string& text, int64_t times) {
  std::string all;
  for (int64_t i = 0; i < times; ++i) all += text;
  return all;
}

// "name:lines" of each function.
std::vector<std::string> found_in(const std::string& text) {
  std::vector<std::string> found;
  for (const Size& size : functions_of({"a.cpp", text})) {
    found.push_back(size.where.substr(size.where.rfind(' ') + 1) + ":" + std::to_string(size.lines));
  }
  return found;
}

TEST(Walls, FindsFunctionsInNamespacesAndClasses) {
  EXPECT_THAT(
      found_in("namespace a {\nint f(int x) {\n  return x;\n}\nclass B {\n  int g() const { return 1; }\n};\n}\n"),
      ElementsAre("f:3", "g:1"));
}

TEST(Walls, CountsFromTheFirstLineOfTheSignature) {
  EXPECT_THAT(
      found_in("int a;\n\ntemplate <class T>\nstd::vector<T> f(T x,\n                 T y)\n{\n  return {x, y};\n}\n"),
      ElementsAre("f:6"));
}

TEST(Walls, TestsAndConstructorsAreFunctions) {
  EXPECT_THAT(found_in("TEST(A, B) {\n  if (x) {\n  }\n}\nA::A(int a) : a_(a) {\n}\n"), ElementsAre("TEST:4", "A:2"));
}

TEST(Walls, TypesTablesAndNamespacesAreNot) {
  EXPECT_THAT(found_in("struct alignas(16) A {\n  int x = 1;\n};\nenum class E { a, b };\n"
                       "template <class T>\nstruct B {};\n"
                       "const std::map<int, std::function<int(int)>> kTable = {\n  {1, f},\n};\n"
                       "const auto kMade = make({\n1,\n2});\nconstexpr int kList[] = {1, 2};\n"),
              IsEmpty());
}

TEST(Walls, BracesInCommentsStringsAndDirectivesDoNotCount) {
  EXPECT_THAT(found_in("void f() {\n  // }\n  const char* a = \"}\\\"}\";\n  char b = '}';\n  auto c = R\"x(}\n})x\";\n"
                       "#define D \\\n  }\n}\nvoid g() { int a = 1'000; }\n"),
              ElementsAre("f:9", "g:1"));
}

TEST(Walls, FunctionsBeyondTheWallAreNamed) {
  const std::string fits = "void f() {\n" + repeat("  g();\n", kFunctionWall - 2) + "}\n";
  const std::string breaks = "void f() {\n" + repeat("  g();\n", kFunctionWall - 1) + "}\n";
  EXPECT_THAT(wall_faults({{"a.cpp", fits}}), IsEmpty());
  EXPECT_THAT(wall_faults({{"a.cpp", breaks}}), ElementsAre("a.cpp:1 f: 101 lines, the wall is 100"));
  EXPECT_THAT(wall_faults({{"a.py", breaks}}), IsEmpty());
}

TEST(Walls, LongFilesSayWhyAndNoneBreaksTheWall) {
  const std::string reason = "// Long because: it is a table.\n";
  EXPECT_THAT(wall_faults({{"a.cpp", repeat("\n", 400)}}), IsEmpty());
  EXPECT_THAT(wall_faults({{"a.cpp", repeat("\n", 401)}}), ElementsAre(HasSubstr("401 lines without")));
  EXPECT_THAT(wall_faults({{"a.cpp", reason + repeat("\n", 400)}}), IsEmpty());
  EXPECT_THAT(wall_faults({{"a.py", "# Long because: it is a table.\n" + repeat("\n", 400)}}), IsEmpty());
  EXPECT_THAT(wall_faults({{"a.cpp", repeat("\n", 50) + reason + repeat("\n", 400)}}), ElementsAre(HasSubstr("451")));
  EXPECT_THAT(wall_faults({{"a.cpp", reason + repeat("\n", 600)}}), ElementsAre(HasSubstr("the wall is 600")));
  EXPECT_THAT(wall_faults({{"golden.json", repeat("\n", 5000)}}), IsEmpty());
}

TEST(Walls, TheLargestComeFirst) { EXPECT_EQ(largest({{"a", 1}, {"b", 3}, {"c", 2}}, 2), "  3 b\n  2 c\n"); }

TEST(Walls, TheHouseStandsWithinThem) {
  const auto files = read_tree(HEADRACE_SOURCE_DIR, "");
  std::vector<Size> file_sizes, function_sizes;
  for (const SourceFile& file : files) {
    if (is_code(file)) file_sizes.push_back({file.path, static_cast<int64_t>(lines_of(file.text).size())});
    if (!is_cpp(file.path)) continue;
    for (Size& size : functions_of(file)) function_sizes.push_back(std::move(size));
  }
  std::cout << "ten largest files [lines]:\n" << largest(file_sizes, 10);
  std::cout << "ten largest functions [lines]:\n" << largest(function_sizes, 10);
  ASSERT_GT(function_sizes.size(), 50u);
  EXPECT_THAT(wall_faults(files), IsEmpty());
}

}  // namespace
}  // namespace headrace::house
