// The offload bench's result for people and for programs, and how it stands to what was aimed at. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "headrace/base/json.h"
#include "headrace/train/offload_bench.h"

namespace headrace::train {

// Whether a cell is where it should be.
struct BenchBars {
  bool stall_near_ideal = false;  // share of stall at most 3 points above an ideal executor's
  // At most 5 % of stall, with ZenFlow 2 %; empty where the closed form itself has some.
  std::optional<bool> stall_in_regime;
  bool prediction = false;  // the simulator within 10 % of the step time
  bool peaks = false;       // of memory within 5 % of the plan
  bool bytes = false;       // of links and host update within 1 % of the formula, with ZenFlow 2 %
};
BenchBars bars_of(const OffloadBenchRow& row);

// {"rows": [...], "setting": {...}}, see docs/formats.md.
OrderedJson to_json(const OffloadBenchResult& result);

// What was measured on what, then a line a cell; what misses its bar has a star.
std::string text_of(const OffloadBenchResult& result);

// How cores, links and host were set and which real machines that resembles.
std::string setting_text();

}  // namespace headrace::train
