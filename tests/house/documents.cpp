#include "tests/house/documents.h"

#include <algorithm>
#include <array>
#include <regex>

namespace headrace::house {
namespace {

// Made by the build, by the demo or by a run: everything under the first, and these names themselves.
constexpr std::array<std::string_view, 6> kMadeFolders = {"build/", "demo/", ".deps/", "out/", "OUT/", "RUN_DIR/"};
// Files of model and run folders, named without a folder.
constexpr std::array<std::string_view, 4> kRunFileEndings = {".json", ".jsonl", ".safetensors", "log.txt"};
constexpr std::array<std::string_view, 7> kOwnFolders = {"headrace/", "tests/", "bench/", "docs/",
                                                         "tools/",    "cmake/", ".ci/"};
constexpr std::array<std::string_view, 9> kSourceEndings = {".h",  ".cpp",   ".cu",  ".py",  ".md",
                                                            ".sh", ".cmake", ".txt", ".json"};

template <size_t N>
bool starts_with_any(std::string_view word, const std::array<std::string_view, N>& starts) {
  return std::any_of(starts.begin(), starts.end(), [&](std::string_view start) { return word.starts_with(start); });
}

template <size_t N>
bool ends_with_any(std::string_view word, const std::array<std::string_view, N>& ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return word.ends_with(end); });
}

bool looks_like_path(std::string_view word) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-";
  if (word.empty() || word.find_first_not_of(allowed) != std::string_view::npos) return false;
  if ((isalpha(static_cast<unsigned char>(word.front())) == 0 && word.front() != '.') || word.starts_with(".."))
    return false;
  return word.find('/') != std::string_view::npos || (ends_with_any(word, kSourceEndings) && word.front() != '.');
}

void add_words(const std::string& text, bool own_folders_only, int64_t line, std::vector<NamedPath>& paths) {
  static const std::regex separator(R"re([\s,;:()"'=]+)re");
  for (std::sregex_token_iterator word(text.begin(), text.end(), separator, -1), end; word != end; ++word) {
    const std::string found = word->str();
    if (!looks_like_path(found) || (own_folders_only && !starts_with_any(found, kOwnFolders))) continue;
    paths.push_back({found, line});
  }
}

std::string at(const SourceFile& file, int64_t line) { return file.path + ":" + std::to_string(line) + ": "; }

// The patterns are put together so that this file does not hold the words it looks for.
const std::regex& forbidden_words() {
  static const std::regex pattern([] {
    const std::string before = "(^|[^A-Za-z0-9_.)}>-])", slash = "/";
    const std::string paths = before + slash + "(work|tmp|root|home)" + slash + "[A-Za-z0-9_.]";
    const std::string hosts =
        std::string("py") + "pi[.]org|pythonhosted" + "[.]org|deb[.]" + "debian[.]org|" + "hugging" + "face[.]co\\b";
    return "(" + paths + ")|(" + hosts + ")";
  }());
  return pattern;
}

}  // namespace

std::vector<NamedPath> named_paths(std::string_view markdown) {
  static const std::regex code(R"(`([^`]+)`)"), link(R"(\]\(([^)#]+)[^)]*\))");
  std::vector<NamedPath> paths;
  bool is_fenced = false;
  int64_t number = 0;
  for (const std::string& line : lines_of(markdown)) {
    ++number;
    if (line.starts_with("```")) {
      is_fenced = !is_fenced;
    } else if (is_fenced) {
      add_words(line, true, number, paths);
    } else {
      for (std::sregex_iterator match(line.begin(), line.end(), code), end; match != end; ++match) {
        add_words((*match)[1], false, number, paths);
      }
      for (std::sregex_iterator match(line.begin(), line.end(), link), end; match != end; ++match) {
        if (const std::string target = (*match)[1]; target.find("://") == std::string::npos) {
          paths.push_back({target, number});
        }
      }
    }
  }
  return paths;
}

std::vector<std::string> path_faults(const SourceFile& document, const std::function<bool(std::string_view)>& exists) {
  std::vector<std::string> faults;
  for (const NamedPath& named : named_paths(document.text)) {
    const bool is_run_file = named.path.find('/') == std::string::npos && ends_with_any(named.path, kRunFileEndings);
    if (is_run_file || starts_with_any(named.path, kMadeFolders) || exists(named.path)) continue;
    faults.push_back(at(document, named.line) + named.path + " does not exist");
  }
  return faults;
}

std::vector<std::string> figure_faults(const SourceFile& document) {
  static const std::regex figure(R"([0-9]x\b|[0-9] ?(%|times|tokens/s|GFLOP/s|GB/s)|[0-9] (ms|s) a step)");
  static const std::regex file(R"(bench/results/[A-Za-z0-9_.-]+\.json)");
  std::vector<std::string> faults;
  std::string paragraph;
  int64_t number = 0, first = 1;
  auto lines = lines_of(document.text);
  lines.emplace_back();
  for (const std::string& line : lines) {
    ++number;
    const bool is_row = line.starts_with("|") || line.starts_with("- ");
    if (line.empty() || is_row) {
      if (std::regex_search(paragraph, figure) && !std::regex_search(paragraph, file)) {
        faults.push_back(at(document, first) + "quotes a figure without its file in bench/results");
      }
      paragraph.clear();
      first = number;
    }
    paragraph += line + "\n";
  }
  return faults;
}

std::vector<std::string> word_faults(const std::vector<SourceFile>& files) {
  std::vector<std::string> faults;
  for (const SourceFile& file : files) {
    const auto lines = lines_of(file.text);
    for (size_t i = 0; i < lines.size(); ++i) {
      std::smatch match;
      if (lines[i].size() > 2000 || !std::regex_search(lines[i], match, forbidden_words())) continue;
      faults.push_back(at(file, static_cast<int64_t>(i) + 1) + "names a place of the workplace: " + match.str());
    }
  }
  return faults;
}

}  // namespace headrace::house
