// metrics.jsonl: one JSON object a line, appended as the run goes. A killed run leaves at most one torn last line,
// which the next one to open the file removes. Any thread may write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>

#include "headrace/base/json.h"
#include "headrace/os/output_file.h"

namespace headrace::telemetry {

class MetricsLog {
 public:
  // Continues the file or makes it. With `resume_step`, lines whose "step" lies beyond it are dropped first: the
  // resumed run will write them again. What is repaired replaces the file in one step. Throws IoError.
  explicit MetricsLog(std::filesystem::path path, std::optional<int64_t> resume_step = std::nullopt);

  // Hands the line to the system in one call, so it survives the death of this process. NaN and infinity become null,
  // bytes that are not UTF-8 are replaced. Throws IoError.
  void write(const OrderedJson& object);

 private:
  std::mutex mutex_;
  std::optional<os::OutputFile> file_;
};

}  // namespace headrace::telemetry
