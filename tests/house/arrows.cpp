#include "tests/house/arrows.h"

#include <algorithm>
#include <regex>
#include <sstream>

namespace headrace::house {
namespace {

bool is_torch(const std::string& header) {
  for (const std::string_view folder : {"torch/", "ATen/", "c10/", "caffe2/"}) {
    if (header.starts_with(folder)) return true;
  }
  return false;
}

bool is_keyword(const std::string& word) {
  return std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

// One include of one file, with what is needed to judge it.
struct Judge {
  const Layers& layers;
  const std::map<std::string, BuiltRoom>& built;

  // Empty when the arrow is allowed.
  std::string fault(const std::string& room, const std::string& header, bool is_quoted) const {
    const int layer = layers.layer_of.at(room);
    if (is_torch(header)) return layer < layers.torch_line ? "torch above the torch line" : "";
    if (!is_quoted) return "";
    const std::string other = room_of(header);
    if (other.empty()) return "included by something else than its path from the root";
    if (other == room) return "";
    const auto found = layers.layer_of.find(other);
    if (found == layers.layer_of.end()) return "room " + other + " has no layer";
    if (found->second == layer) return "sideways: " + room + " and " + other + " share a layer";
    if (found->second > layer) return "upward: from " + room + " to " + other;
    const auto line = built.find(room);
    if (line != built.end() && !line->second.deps.contains(other)) return other + " is not among its DEPS in CMake";
    return "";
  }
};

}  // namespace

std::map<std::string, BuiltRoom> built_rooms(std::string_view cmake_text) {
  static const std::regex call(R"re(headrace_room\(([^)]*)\))re");
  std::string text;
  for (const std::string& line : lines_of(cmake_text)) text += line.substr(0, line.find('#')) + "\n";
  std::map<std::string, BuiltRoom> rooms;
  for (std::sregex_iterator match(text.begin(), text.end(), call), end; match != end; ++match) {
    std::istringstream words((*match)[1].str());
    std::string room, word, section;
    words >> room;
    BuiltRoom& built = rooms[room];
    while (words >> word) {
      if (is_keyword(word)) {
        section = word;
        built.has_torch = built.has_torch || word == "TORCH";
      } else if (section == "DEPS") {
        built.deps.insert(word);
      }
    }
  }
  return rooms;
}

std::vector<std::string> include_faults(const std::vector<SourceFile>& files, const Layers& layers,
                                        const std::map<std::string, BuiltRoom>& built) {
  static const std::regex include(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  const Judge judge{layers, built};
  std::vector<std::string> faults;
  for (const SourceFile& file : files) {
    const std::string room = room_of(file.path);
    if (room.empty() || !is_cpp(file.path)) continue;
    if (!layers.layer_of.contains(room)) {
      faults.push_back(file.path + ": room " + room + " has no layer");
      continue;
    }
    const auto lines = lines_of(without_comments(file.text, false));
    for (size_t i = 0; i < lines.size(); ++i) {
      std::smatch match;
      if (!std::regex_search(lines[i], match, include)) continue;
      const std::string fault = judge.fault(room, match[2], match[1] == "\"");
      if (fault.empty()) continue;
      faults.push_back(file.path + ":" + std::to_string(i + 1) + ": " + match[2].str() + ": " + fault);
    }
  }
  return faults;
}

std::vector<std::string> build_faults(const std::map<std::string, BuiltRoom>& built, const Layers& layers) {
  std::vector<std::string> faults;
  for (const auto& [room, line] : built) {
    const auto own = layers.layer_of.find(room);
    if (own == layers.layer_of.end()) {
      faults.push_back("room " + room + " has no layer");
      continue;
    }
    if (line.has_torch && own->second < layers.torch_line) faults.push_back(room + ": TORCH above the torch line");
    for (const std::string& dep : line.deps) {
      const auto other = layers.layer_of.find(dep);
      if (other == layers.layer_of.end() || other->second >= own->second) {
        faults.push_back(room + ": DEPS name " + dep + ", which does not lie below it");
      }
    }
  }
  return faults;
}

}  // namespace headrace::house
