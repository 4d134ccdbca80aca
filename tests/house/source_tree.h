// The files of a checkout as texts, so that every check of the house is a pure function of them and can be tried on a
// made-up tree. One thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::house {

struct SourceFile {
  std::string path;  // from the root, with '/'
  std::string text;
};

// Every regular file under `root`/`folder` ("" for everything), sorted by path; left out are folders that git ignores
// (build, .deps, demo, caches) and files over 1 MiB.
std::vector<SourceFile> read_tree(const std::filesystem::path& root, std::string_view folder);

bool is_cpp(std::string_view path);    // .h, .cpp, .cu
bool is_code(const SourceFile& file);  // those, Python, CMake, make, and whatever begins with #!

// "tokenizer" of "headrace/tokenizer/bpe.cpp"; empty for files elsewhere or directly in headrace/.
std::string room_of(std::string_view path);

std::vector<std::string> lines_of(std::string_view text);

// C++ text of the same length and lines with comments blanked out, and with `strings_too` also what stands between
// quotes, raw strings included.
std::string without_comments(std::string_view text, bool strings_too);

}  // namespace headrace::house
