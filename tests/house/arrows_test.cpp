#include "tests/house/arrows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::house {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Layers kSmall{.layer_of = {{"base", 0}, {"os", 1}, {"config", 1}, {"tensor", 2}, {"cli", 3}}, .torch_line = 2};

std::vector<std::string> faults_in(const std::string& path, const std::string& text,
                                   const std::map<std::string, BuiltRoom>& built = {}) {
  return include_faults({{path, text}}, kSmall, built);
}

TEST(Arrows, DownAndWithinARoomAreAllowed) {
  EXPECT_THAT(faults_in("headrace/tensor/a.h", "#include \"headrace/base/x.h\"\n#include \"headrace/tensor/b.h\"\n"),
              IsEmpty());
  EXPECT_THAT(faults_in("headrace/tensor/a.h", "#include <torch/all.h>\n#include <vector>\n"), IsEmpty());
  EXPECT_THAT(faults_in("tests/os/a_test.cpp", "#include \"headrace/cli/x.h\"\n"), IsEmpty());
}

TEST(Arrows, UpIsRefusedWithFileAndLine) {
  EXPECT_THAT(faults_in("headrace/os/a.cpp", "\n#include \"headrace/cli/x.h\"\n"),
              ElementsAre("headrace/os/a.cpp:2: headrace/cli/x.h: upward: from os to cli"));
}

TEST(Arrows, SidewaysIsRefused) {
  EXPECT_THAT(faults_in("headrace/os/a.h", "#include \"headrace/config/x.h\"\n"), ElementsAre(HasSubstr("sideways")));
}

TEST(Arrows, TorchAboveTheLineIsRefusedInHeadersSourcesAndSubfolders) {
  for (const std::string header : {"torch/all.h", "ATen/ATen.h", "c10/core/Device.h"}) {
    for (const std::string path : {"headrace/os/a.h", "headrace/os/a.cpp", "headrace/os/cuda/a.cu"}) {
      EXPECT_THAT(faults_in(path, "#  include <" + header + ">\n"), ElementsAre(HasSubstr("torch line"))) << path;
      EXPECT_THAT(faults_in(path, "#include \"" + header + "\"\n"), ElementsAre(HasSubstr("torch line"))) << path;
    }
  }
}

TEST(Arrows, RoomsWithoutALayerAreRefused) {
  EXPECT_THAT(faults_in("headrace/attic/a.h", ""), ElementsAre(HasSubstr("attic has no layer")));
  EXPECT_THAT(faults_in("headrace/cli/a.h", "#include \"headrace/attic/a.h\"\n"),
              ElementsAre(HasSubstr("attic has no layer")));
}

TEST(Arrows, IncludesGoByPathFromTheRoot) {
  EXPECT_THAT(faults_in("headrace/os/a.cpp", "#include \"a.h\"\n"), ElementsAre(HasSubstr("its path from the root")));
}

TEST(Arrows, CommentsAreNoIncludes) {
  EXPECT_THAT(faults_in("headrace/os/a.h", "// #include \"headrace/cli/x.h\"\n/*\n#include <torch/all.h>\n*/\n"),
              IsEmpty());
}

TEST(Arrows, WhatCMakeDoesNotNameIsRefused) {
  const auto built = built_rooms("headrace_room(os DEPS)\nheadrace_room(tensor TORCH DEPS os LINK base)\n");
  EXPECT_THAT(faults_in("headrace/tensor/a.h", "#include \"headrace/base/x.h\"\n", built),
              ElementsAre(HasSubstr("base is not among its DEPS")));
  EXPECT_THAT(faults_in("headrace/tensor/a.h", "#include \"headrace/os/x.h\"\n", built), IsEmpty());
  EXPECT_THAT(faults_in("headrace/cli/a.h", "#include \"headrace/os/x.h\"\n", built), IsEmpty());
}

TEST(Arrows, ReadsTheRoomsOfTheBuild) {
  const auto built =
      built_rooms("# headrace_room(no DEPS no)\nheadrace_room(tensor TORCH DEPS base\n  os PLAIN a.cpp LINK X::Y)\n");
  ASSERT_EQ(built.size(), 1u);
  EXPECT_TRUE(built.at("tensor").has_torch);
  EXPECT_THAT(built.at("tensor").deps, ElementsAre("base", "os"));
}

TEST(Arrows, TheBuildMayNotAllowMoreThanTheLayers) {
  const auto faults = [](std::string_view text) { return build_faults(built_rooms(text), kSmall); };
  EXPECT_THAT(faults("headrace_room(tensor TORCH DEPS base os config)"), IsEmpty());
  EXPECT_THAT(faults("headrace_room(os DEPS config)"), ElementsAre(HasSubstr("os: DEPS name config")));
  EXPECT_THAT(faults("headrace_room(os DEPS tensor)"), ElementsAre(HasSubstr("os: DEPS name tensor")));
  EXPECT_THAT(faults("headrace_room(os DEPS attic)"), ElementsAre(HasSubstr("os: DEPS name attic")));
  EXPECT_THAT(faults("headrace_room(os TORCH)"), ElementsAre(HasSubstr("TORCH above")));
  EXPECT_THAT(faults("headrace_room(attic)"), ElementsAre(HasSubstr("attic has no layer")));
}

class House : public testing::Test {
 protected:
  static std::map<std::string, BuiltRoom> built() {
    for (const SourceFile& file : read_tree(HEADRACE_SOURCE_DIR, "headrace")) {
      if (file.path == "headrace/CMakeLists.txt") return built_rooms(file.text);
    }
    return {};
  }
};

TEST_F(House, ArrowsPointDown) {
  const auto files = read_tree(HEADRACE_SOURCE_DIR, "headrace");
  ASSERT_GT(files.size(), 10u);
  EXPECT_THAT(include_faults(files, layers_of_the_house(), built()), IsEmpty());
}

TEST_F(House, TheBuildAllowsNoMore) {
  ASSERT_GT(built().size(), 5u);
  EXPECT_THAT(build_faults(built(), layers_of_the_house()), IsEmpty());
}

}  // namespace
}  // namespace headrace::house
