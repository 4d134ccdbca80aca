// What a run says in words: to its log file with the time, and to whoever shows messages. Passed around, never global.
// Any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>

#include "headrace/os/output_file.h"

namespace headrace::telemetry {

class Log {
 public:
  // Shows one message, for example through ProgressLine::message. Called under the log's lock: must not log.
  using Show = std::function<void(std::string_view line)>;

  // Messages are only shown, or with an empty `show` only kept.
  explicit Log(Show show);
  // Also appends them to the file. Throws IoError when it cannot be opened.
  Log(const std::filesystem::path& path, Show show);

  // To file and screen; a warning begins with "warning: ". Messages may have several lines. When the file can no longer
  // be written the screen says so once and the run goes on.
  void info(std::string_view text);
  void warn(std::string_view text);
  // To the file only.
  void detail(std::string_view text);

 private:
  void keep(std::string_view text);

  std::mutex mutex_;
  std::optional<os::OutputFile> file_;
  Show show_;
};

}  // namespace headrace::telemetry
