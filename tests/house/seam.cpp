#include "tests/house/seam.h"

#include <regex>

namespace headrace::house {

std::vector<std::string> writes_past_the_seam(const std::vector<SourceFile>& files) {
  static const std::regex writing(
      R"((\bstd::(o|basic_o)?fstream\b)|(\b(std::)?(fopen|freopen|tmpfile|mkstemp)\s*\()|)"
      R"((\b(fs|filesystem)::(rename|remove|remove_all|resize_file|copy|copy_file|create_\w+|permissions)\s*\()|)"
      R"(((^|[^\w:>.])::(rename\w*|unlink\w*|mkdir\w*|rmdir|ftruncate|truncate|link|symlink|creat|pwrite|write)\s*\()|)"
      R"((\bO_(WRONLY|RDWR|CREAT)\b))");
  std::vector<std::string> faults;
  for (const SourceFile& file : files) {
    if (!file.path.starts_with("headrace/") || room_of(file.path) == "os" || !is_cpp(file.path)) continue;
    const std::vector<std::string> lines = lines_of(without_comments(file.text, true));
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!std::regex_search(lines[i], writing)) continue;
      faults.push_back(file.path + ":" + std::to_string(i + 1) +
                       ": changes the disk past headrace/os, where no test can put a fault");
    }
  }
  return faults;
}

}  // namespace headrace::house
