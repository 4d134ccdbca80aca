// Which room knows which, read from the includes and from headrace/CMakeLists.txt, held against the layers.
// Pure; each function returns one sentence a fault, none when the house is in order.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/house/layers.h"
#include "tests/house/source_tree.h"

namespace headrace::house {

// One room as headrace/CMakeLists.txt builds it.
struct BuiltRoom {
  std::set<std::string> deps;
  bool has_torch = false;
};

// The headrace_room(...) lines.
std::map<std::string, BuiltRoom> built_rooms(std::string_view cmake_text);

// Includes that go up or sideways, to or from a room without a layer, without the room's folder in front, to torch from
// above the torch line, or to a room that the includer's line in CMake does not name (rooms that CMake builds
// elsewhere are exempt from this last one).
std::vector<std::string> include_faults(const std::vector<SourceFile>& files, const Layers& layers,
                                        const std::map<std::string, BuiltRoom>& built);

// What CMake allows beyond the layers: an arrow that does not go down, torch above the line, a room without a layer.
std::vector<std::string> build_faults(const std::map<std::string, BuiltRoom>& built, const Layers& layers);

}  // namespace headrace::house
