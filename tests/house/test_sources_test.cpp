#include "tests/house/test_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace headrace::house {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(TestSources, AnUnbuiltOneIsFound) {
  const std::vector<SourceFile> files = {
      {"tests/a/x_test.cpp", ""}, {"tests/a/cuda/y_test.cpp", ""}, {"tests/a/z.h", ""}};
  EXPECT_THAT(unbuilt_tests(files, {"tests/a/x_test.cpp"}, false), IsEmpty());
  EXPECT_THAT(unbuilt_tests(files, {}, false), ElementsAre(HasSubstr("x_test.cpp")));
  EXPECT_THAT(unbuilt_tests(files, {"tests/a/x_test.cpp"}, true), ElementsAre(HasSubstr("y_test.cpp")));
}

TEST(TestSources, OneThatCannotFailIsFound) {
  EXPECT_THAT(toothless_tests({{"tests/a/x_test.cpp", "TEST(A, B) { EXPECT_EQ(1, 1); }"}}), IsEmpty());
  EXPECT_THAT(toothless_tests({{"tests/a/x_test.cpp", "TEST(A, B) { f(); }  // EXPECT_EQ"}}),
              ElementsAre(HasSubstr("nothing in it can fail")));
}

TEST(TestSources, ASkipSaysWhy) {
  const auto faults = [](const std::string& skip) {
    return toothless_tests({{"tests/a/x_test.cpp", "TEST(A, B) { ASSERT_EQ(1, 1); " + skip + " }"}});
  };
  EXPECT_THAT(faults("GTEST_SKIP() << \"no GPU\";"), IsEmpty());
  EXPECT_THAT(faults("GTEST_SKIP();"), ElementsAre(HasSubstr("without a reason")));
}

// Paths, from the root, of every source that this build compiles.
std::set<std::string> sources_of_this_build() {
  std::ifstream stream(std::filesystem::path(HEADRACE_BINARY_DIR) / "compile_commands.json");
  std::set<std::string> sources;
  for (const auto& command : nlohmann::json::parse(stream)) {
    const std::filesystem::path file = command.at("file").get<std::string>();
    sources.insert(file.lexically_relative(HEADRACE_SOURCE_DIR).generic_string());
  }
  return sources;
}

TEST(TestSources, OfTheHouseAreAllBuilt) {
  const auto built = sources_of_this_build();
  ASSERT_TRUE(built.contains("tests/house/test_sources_test.cpp"));
  const bool has_cuda = built.contains("headrace/device/cuda/cuda.cpp");
  EXPECT_THAT(unbuilt_tests(read_tree(HEADRACE_SOURCE_DIR, "tests"), built, has_cuda), IsEmpty());
}

TEST(TestSources, OfTheHouseCanFail) {
  EXPECT_THAT(toothless_tests(read_tree(HEADRACE_SOURCE_DIR, "tests")), IsEmpty());
}

}  // namespace
}  // namespace headrace::house
