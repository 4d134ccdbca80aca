#include "tests/house/walls.h"

#include <algorithm>
#include <sstream>

namespace headrace::house {
namespace {

constexpr size_t kTopLines = 10;  // where "Long because:" must stand

bool is_space(char c) { return isspace(static_cast<unsigned char>(c)) != 0; }

// Preprocessor lines blanked out, continuations too: their braces need not balance.
std::string without_directives(std::string text) {
  bool is_directive = false;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const size_t first = text.find_first_not_of(" \t", begin);
    is_directive = is_directive || (first < end && text[first] == '#');
    const bool goes_on = end > begin && text[end - 1] == '\\';
    if (is_directive) std::fill(text.begin() + begin, text.begin() + end, ' ');
    is_directive = is_directive && goes_on;
    begin = end + 1;
  }
  return text;
}

// What stands before an opening brace: is it the signature of a function?
bool is_signature(std::string head) {
  while (!head.empty() && is_space(head.back())) head.pop_back();
  if (head.empty() || head.back() == '=' || head.find('(') == std::string::npos) return false;
  if (std::count(head.begin(), head.end(), '(') != std::count(head.begin(), head.end(), ')')) return false;
  std::istringstream words(head);
  std::string word;
  words >> word;
  if (word == "template") {  // skip <...>
    int depth = 0;
    size_t at = head.find('<');
    for (; at < head.size(); ++at) {
      depth += head[at] == '<' ? 1 : head[at] == '>' ? -1 : 0;
      if (depth == 0) break;
    }
    words = std::istringstream(at < head.size() ? head.substr(at + 1) : "");
    words >> word;
  }
  return word != "namespace" && word != "class" && word != "struct" && word != "union" && word != "enum";
}

// "adamw_update" of "void adamw_update(std::span<float> master": the word before the first parenthesis.
std::string name_in(const std::string& head) {
  const size_t parenthesis = head.find('(');
  size_t begin = parenthesis;
  while (begin > 0 && (isalnum(static_cast<unsigned char>(head[begin - 1])) || head[begin - 1] == '_')) --begin;
  return head.substr(begin, parenthesis - begin);
}

}  // namespace

std::vector<Size> functions_of(const SourceFile& file) {
  const std::string text = without_directives(without_comments(file.text, true));
  std::vector<Size> functions;
  size_t head = 0;       // where what may be a signature begins
  int depth_inside = 0;  // braces open since the current function's own; 0 outside of functions
  int64_t line = 1, signature_line = 1;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (depth_inside > 0) {
      depth_inside += c == '{' ? 1 : c == '}' ? -1 : 0;
      if (depth_inside > 0) continue;
      functions.back().lines = line - signature_line + 1;
    } else if (c == '{' && is_signature(text.substr(head, at - head))) {
      while (is_space(text[head])) ++head;
      signature_line = line - std::count(text.begin() + head, text.begin() + at, '\n');
      functions.push_back(
          {file.path + ":" + std::to_string(signature_line) + " " + name_in(text.substr(head, at - head))});
      depth_inside = 1;
      continue;
    } else if (c != '{' && c != '}' && c != ';') {
      continue;
    }
    head = at + 1;
  }
  return functions;
}

std::string largest(std::vector<Size> sizes, size_t count) {
  std::stable_sort(sizes.begin(), sizes.end(), [](const Size& a, const Size& b) { return a.lines > b.lines; });
  std::ostringstream list;
  for (size_t i = 0; i < std::min(count, sizes.size()); ++i)
    list << "  " << sizes[i].lines << " " << sizes[i].where << "\n";
  return list.str();
}

std::vector<std::string> wall_faults(const std::vector<SourceFile>& files) {
  std::vector<std::string> faults;
  for (const SourceFile& file : files) {
    if (!is_code(file)) continue;
    const auto lines = lines_of(file.text);
    const auto top_end = lines.begin() + static_cast<int64_t>(std::min(kTopLines, lines.size()));
    const bool says_why = std::any_of(lines.begin(), top_end, [](const std::string& line) {
      return line.starts_with("// Long because: ") || line.starts_with("# Long because: ");
    });
    const auto count = static_cast<int64_t>(lines.size());
    if (count > kFileWall) {
      faults.push_back(file.path + ": " + std::to_string(count) + " lines, the wall is " + std::to_string(kFileWall));
    } else if (count > kFileNeedsReason && !says_why) {
      faults.push_back(file.path + ": " + std::to_string(count) +
                       " lines without a line \"Long because: \" at its top");
    }
    if (!is_cpp(file.path)) continue;
    for (const Size& function : functions_of(file)) {
      if (function.lines <= kFunctionWall) continue;
      faults.push_back(function.where + ": " + std::to_string(function.lines) + " lines, the wall is " +
                       std::to_string(kFunctionWall));
    }
  }
  return faults;
}

}  // namespace headrace::house
