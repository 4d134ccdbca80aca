// What a test tried, as one line for the table in docs/reliability.md. Any room's tests may record.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>

#include "headrace/base/json.h"

namespace headrace::fault {

struct Outcome {
  std::string happened;
  std::string lost;
};

// Does nothing unless the environment says where to: tools/reliability_table does. What precedes ':' in `where` is the
// kind of place; `call` is for whoever looks into the lines.
inline void record(const std::string& fault, const std::string& where, const std::string& call,
                   const Outcome& outcome) {
  const char* path = std::getenv("HEADRACE_FAULT_TABLE");
  if (path == nullptr) return;
  const OrderedJson row = {
      {"fault", fault}, {"where", where}, {"call", call}, {"happened", outcome.happened}, {"lost", outcome.lost}};
  std::ofstream(path, std::ios::app) << row.dump() + "\n";
}

}  // namespace headrace::fault
