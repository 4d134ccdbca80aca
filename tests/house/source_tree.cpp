#include "tests/house/source_tree.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

namespace headrace::house {
namespace fs = std::filesystem;
namespace {

constexpr std::array<std::string_view, 7> kIgnoredFolders = {".git",   "build",       ".deps",        "demo",
                                                             ".cache", "__pycache__", ".pytest_cache"};
constexpr uintmax_t kLargestText = 1 << 20;

bool is_ignored(const fs::path& folder) {
  return std::find(kIgnoredFolders.begin(), kIgnoredFolders.end(), folder.filename().string()) != kIgnoredFolders.end();
}

std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool ends_with_any(std::string_view path, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return path.ends_with(ending); });
}

// Walks C++ text, saying of each character whether it is code.
class Scanner {
 public:
  Scanner(std::string_view text, bool strings_too) : text_(text), out_(text), strings_too_(strings_too) {}

  std::string run() {
    while (at_ < text_.size()) {
      if (starts("//")) {
        blank_to(find("\n"));
      } else if (starts("/*")) {
        blank_to(after("*/", at_ + 2));
      } else if (text_[at_] == '"' && at_ > 0 && text_[at_ - 1] == 'R') {
        raw_string();
      } else if (text_[at_] == '"' || (text_[at_] == '\'' && !is_digit_separator())) {
        quoted(text_[at_]);
      } else {
        ++at_;
      }
    }
    return out_;
  }

 private:
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  size_t find(std::string_view what) const { return std::min(text_.find(what, at_), text_.size()); }
  size_t after(std::string_view what, size_t from) const {
    const size_t found = text_.find(what, from);
    return found == std::string_view::npos ? text_.size() : found + what.size();
  }
  bool is_digit_separator() const { return at_ > 0 && isalnum(static_cast<unsigned char>(text_[at_ - 1])) != 0; }

  void blank_to(size_t end) {
    for (; at_ < end; ++at_) {
      if (out_[at_] != '\n') out_[at_] = ' ';
    }
  }

  void quoted(char quote) {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    end = std::min(end, text_.size());
    ++at_;
    if (strings_too_) blank_to(end);
    at_ = std::min(end + 1, text_.size());
  }

  void raw_string() {
    const size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) return void(at_ = text_.size());
    const std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const size_t end = after(close, open);
    ++at_;
    if (strings_too_) blank_to(std::max(at_, end - 1));
    at_ = end;
  }

  std::string_view text_;
  std::string out_;
  bool strings_too_;
  size_t at_ = 0;
};

}  // namespace

std::vector<SourceFile> read_tree(const fs::path& root, std::string_view folder) {
  std::vector<SourceFile> files;
  const fs::path start = root / folder;
  if (!fs::exists(start)) return files;
  for (auto entry = fs::recursive_directory_iterator(start); entry != fs::end(entry); ++entry) {
    if (is_ignored(entry->path())) {  // of a second work tree .git is a file
      if (entry->is_directory()) entry.disable_recursion_pending();
    } else if (entry->is_regular_file() && entry->file_size() <= kLargestText) {
      files.push_back({entry->path().lexically_relative(root).generic_string(), read(entry->path())});
    }
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

bool is_cpp(std::string_view path) { return ends_with_any(path, {".h", ".cpp", ".cu"}); }

bool is_code(const SourceFile& file) {
  return is_cpp(file.path) || file.text.starts_with("#!") ||
         ends_with_any(file.path, {".py", ".cmake", "CMakeLists.txt", "Makefile"});
}

std::string room_of(std::string_view path) {
  constexpr std::string_view house = "headrace/";
  if (!path.starts_with(house)) return {};
  path.remove_prefix(house.size());
  const size_t slash = path.find('/');
  return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash));
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string without_comments(std::string_view text, bool strings_too) { return Scanner(text, strings_too).run(); }

}  // namespace headrace::house
