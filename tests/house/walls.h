// How large files and functions are. Pure functions of texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/house/source_tree.h"

namespace headrace::house {

inline constexpr int64_t kFileNeedsReason = 400;  // [lines] beyond it a file says "Long because:" near its top
inline constexpr int64_t kFileWall = 600;         // [lines]
inline constexpr int64_t kFunctionWall = 100;     // [lines]

struct Size {
  std::string where;  // "headrace/data/corpus.cpp", with line and name for a function
  int64_t lines = 0;
};

// The functions that C++ text defines, lambdas inside them counted as part of them. `lines` runs from the first line of
// the signature to the closing brace. Reads braces, not C++: a function made by a macro's braces counts as one.
std::vector<Size> functions_of(const SourceFile& file);

// Largest first, at most `count`, one a line: for people to read.
std::string largest(std::vector<Size> sizes, size_t count);

// One sentence a file or function that breaks a wall, or that is long and does not say why.
std::vector<std::string> wall_faults(const std::vector<SourceFile>& files);

}  // namespace headrace::house
