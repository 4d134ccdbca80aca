#include "tests/house/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace headrace::house {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> paths_in(std::string_view markdown) {
  std::vector<std::string> paths;
  for (const NamedPath& named : named_paths(markdown)) paths.push_back(named.path);
  return paths;
}

TEST(Documents, FindsPathsInCodeAndLinks) {
  EXPECT_THAT(paths_in("See `headrace/base/errors.h`, `README.md` and [threads](docs/threads.md#cast).\n"),
              ElementsAre("headrace/base/errors.h", "README.md", "docs/threads.md"));
  EXPECT_THAT(paths_in("`python3 tools/gguf_to_hf.py --out demo/x`"), ElementsAre("tools/gguf_to_hf.py", "demo/x"));
}

TEST(Documents, WordsThatAreNoPathsAreLeftAlone) {
  EXPECT_THAT(paths_in("headrace/base, `make test`, `tests/<room>/<file>_test.cpp`, `at::parallel_for`, `--json`, "
                       "[site](https://example.org/a/b), `1/sqrt(x)`\n"),
              IsEmpty());
}

TEST(Documents, InFencesOnlyPathsOfTheCheckoutCount) {
  EXPECT_THAT(paths_in("```\nheadrace/\n  base/  errors\ntests/base/x.cpp and/or\n```\n`a/b`\n"),
              ElementsAre("headrace/", "tests/base/x.cpp", "a/b"));
}

TEST(Documents, AMissingPathIsNamedWithItsLine) {
  const auto exists = [](std::string_view path) { return path == "docs/threads.md"; };
  EXPECT_THAT(path_faults({"README.md", "`docs/threads.md`\n\n`docs/gone.md`\n"}, exists),
              ElementsAre("README.md:3: docs/gone.md does not exist"));
}

TEST(Documents, WhatTheBuildAndRunsMakeNeedNotExist) {
  const auto exists = [](std::string_view) { return false; };
  EXPECT_THAT(path_faults({"README.md", "`build/headrace`, `demo/run/model`, `config.json`, `metrics.jsonl`"}, exists),
              IsEmpty());
  EXPECT_THAT(path_faults({"README.md", "`tests/golden/config.json`"}, exists), ElementsAre(HasSubstr("golden")));
}

TEST(Documents, AFigureNeedsItsFile) {
  EXPECT_THAT(figure_faults({"README.md", "Faster: 1.6x eager, see `bench/results/step.json`.\n"}), IsEmpty());
  EXPECT_THAT(figure_faults({"README.md", "Two cores, `bench/results/` holds files.\n"}), IsEmpty());
  EXPECT_THAT(figure_faults({"README.md", "Text.\n\nFaster: 1.6x eager.\n\n`bench/results/step.json`\n"}),
              ElementsAre(HasSubstr("README.md:2")));
  EXPECT_THAT(figure_faults({"README.md", "| demo | 130 tokens/s |\n| x | 2x, bench/results/a.json |\n"}),
              ElementsAre(HasSubstr("README.md:1")));
}

TEST(Documents, WordsOfTheWorkplaceAreFound) {
  const std::string slash = "/";
  const auto faults = [](const std::string& text) { return word_faults({{"a.md", text}}); };
  EXPECT_THAT(faults("cd " + slash + "work" + slash + "main\n"), ElementsAre(HasSubstr("a.md:1")));
  EXPECT_THAT(faults("\n\"" + slash + "tmp" + slash + "x\"\n"), ElementsAre(HasSubstr("a.md:2")));
  EXPECT_THAT(faults("pip install -i https://py" + std::string("pi.org/simple\n")), ElementsAre(HasSubstr("a.md:1")));
  EXPECT_THAT(faults("frame" + slash + "work" + slash + "a, ${dir}" + slash + "tmp" + slash + "b\n"), IsEmpty());
}

std::vector<SourceFile> documents() {
  std::vector<SourceFile> files;
  for (SourceFile& file : read_tree(HEADRACE_SOURCE_DIR, "")) {
    const bool is_front = file.path == "README.md" || file.path == "CONTRIBUTING.md";
    const bool is_doc = file.path.starts_with("docs/") && file.path.ends_with(".md");
    if (is_front || is_doc) files.push_back(std::move(file));
  }
  return files;
}

TEST(Documents, OfTheHouseNameWhatExists) {
  // An empty folder does not count: git would not keep it.
  const auto exists = [](std::string_view path) {
    const auto full = std::filesystem::path(HEADRACE_SOURCE_DIR) / path;
    return std::filesystem::exists(full) && !std::filesystem::is_empty(full);
  };
  const auto files = documents();
  ASSERT_GE(files.size(), 5u);  // README, CONTRIBUTING, architecture, formats, threads
  for (const SourceFile& file : files) EXPECT_THAT(path_faults(file, exists), IsEmpty()) << file.path;
}

TEST(Documents, TheReadmeQuotesFiguresWithTheirFile) {
  const auto files = documents();
  const auto readme =
      std::find_if(files.begin(), files.end(), [](const auto& file) { return file.path == "README.md"; });
  ASSERT_NE(readme, files.end());
  EXPECT_THAT(figure_faults(*readme), IsEmpty());
}

TEST(Documents, OfTheHouseNeverNameTheWorkplace) {
  std::vector<SourceFile> files;
  for (SourceFile& file : read_tree(HEADRACE_SOURCE_DIR, "")) {
    if (!file.path.starts_with("tests/golden/")) files.push_back(std::move(file));
  }
  ASSERT_GT(files.size(), 50u);
  EXPECT_THAT(word_faults(files), IsEmpty());
}

}  // namespace
}  // namespace headrace::house
