// Whether the tests of a checkout are tests: built, able to fail, and honest about what they skip. Pure; one sentence a
// fault.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/house/source_tree.h"

namespace headrace::house {

// Test sources (tests/**/*_test.cpp) that are not among `built`, paths from the root. Those in a folder named cuda are
// built with CUDA only.
std::vector<std::string> unbuilt_tests(const std::vector<SourceFile>& files, const std::set<std::string>& built,
                                       bool has_cuda);

// Test sources without a single EXPECT_ or ASSERT_, and skips without a reason.
std::vector<std::string> toothless_tests(const std::vector<SourceFile>& files);

}  // namespace headrace::house
