// What the documents promise: paths that exist, figures with their file, no word of the place where they were written.
// Pure but for `exists`; one sentence a fault.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/house/source_tree.h"

namespace headrace::house {

struct NamedPath {
  std::string path;
  int64_t line = 0;
};

// Repository paths named in Markdown: link targets, and words with a slash or a source file's ending in `code` and in
// fenced blocks (there only those that begin with one of the checkout's own folders). Words with other characters than
// [A-Za-z0-9_./-], such as tests/<room>/, are no paths.
std::vector<NamedPath> named_paths(std::string_view markdown);

// Paths that neither exist nor are made by the build or by a run.
std::vector<std::string> path_faults(const SourceFile& document, const std::function<bool(std::string_view)>& exists);

// Paragraphs and table rows that quote a speed but name no file of bench/results.
std::vector<std::string> figure_faults(const SourceFile& document);

// Machine paths of a workplace and hosts of package registries.
std::vector<std::string> word_faults(const std::vector<SourceFile>& files);

}  // namespace headrace::house
