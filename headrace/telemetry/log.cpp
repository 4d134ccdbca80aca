#include "headrace/telemetry/log.h"

#include <ctime>
#include <string>
#include <utility>

#include "headrace/base/errors.h"

namespace headrace::telemetry {
namespace {

// "2026-01-31T09:05:00Z "
std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char buffer[32];
  const size_t length = std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ ", &parts);
  return {buffer, length};
}

}  // namespace

Log::Log(Show show) : show_(std::move(show)) {}

Log::Log(const std::filesystem::path& path, Show show)
    : file_(std::in_place, path, os::OutputFile::Mode::kAppend), show_(std::move(show)) {}

void Log::info(std::string_view text) {
  const std::lock_guard lock(mutex_);
  keep(text);
  if (show_) show_(text);
}

void Log::warn(std::string_view text) { info("warning: " + std::string(text)); }

void Log::detail(std::string_view text) {
  const std::lock_guard lock(mutex_);
  keep(text);
}

void Log::keep(std::string_view text) {
  if (!file_) return;
  try {
    file_->write(time_stamp() + std::string(text) + "\n");
  } catch (const IoError& error) {
    file_.reset();
    if (show_) show_("warning: the log ends here: " + std::string(error.what()));
  }
}

}  // namespace headrace::telemetry
