#include "tests/house/test_sources.h"

#include <regex>

namespace headrace::house {
namespace {

bool is_test(std::string_view path) { return path.starts_with("tests/") && path.ends_with("_test.cpp"); }

}  // namespace

std::vector<std::string> unbuilt_tests(const std::vector<SourceFile>& files, const std::set<std::string>& built,
                                       bool has_cuda) {
  std::vector<std::string> faults;
  for (const SourceFile& file : files) {
    if (!is_test(file.path) || built.contains(file.path)) continue;
    if (!has_cuda && file.path.find("/cuda/") != std::string::npos) continue;
    faults.push_back(file.path + ": not built. Add its folder to tests/CMakeLists.txt.");
  }
  return faults;
}

std::vector<std::string> toothless_tests(const std::vector<SourceFile>& files) {
  static const std::regex assertion(R"(\b(EXPECT|ASSERT)_[A-Z]+)"), bare_skip(R"(GTEST_SKIP\(\)\s*;)");
  std::vector<std::string> faults;
  for (const SourceFile& file : files) {
    if (!is_test(file.path)) continue;
    const std::string code = without_comments(file.text, true);
    if (!std::regex_search(code, assertion)) faults.push_back(file.path + ": nothing in it can fail");
    if (std::regex_search(code, bare_skip)) faults.push_back(file.path + ": skips without a reason");
  }
  return faults;
}

}  // namespace headrace::house
