#include "headrace/telemetry/metrics_log.h"

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"

namespace headrace::telemetry {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(const os::MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// Cuts a last line without a newline.
void remove_torn_line(const fs::path& path) {
  const os::MappedFile file(path);
  const std::string_view text = text_of(file);
  const size_t whole = text.rfind('\n') + 1;  // npos + 1 is 0: nothing is whole
  if (whole == text.size()) return;
  std::error_code error;
  fs::resize_file(path, whole, error);
  if (error) throw IoError("telemetry.metrics", "cannot shorten", path.native(), error.value());
}

bool is_beyond(std::string_view line, int64_t step) {
  const Json object = Json::parse(line.begin(), line.end(), nullptr, false);
  return object.is_object() && object.contains("step") && is_int(object["step"]) && object["step"] > step;
}

void drop_lines_beyond(const fs::path& path, int64_t step) {
  std::string kept;
  size_t size = 0;
  {
    const os::MappedFile file(path);
    std::string_view rest = text_of(file);
    size = rest.size();
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n') + 1);
      if (!is_beyond(line, step)) kept += line;
      rest.remove_prefix(line.size());
    }
  }
  if (kept.size() != size) os::write_file_atomically(path, kept);
}

}  // namespace

MetricsLog::MetricsLog(fs::path path, std::optional<int64_t> resume_step) {
  std::error_code error;
  if (fs::exists(path, error)) {
    remove_torn_line(path);
    if (resume_step) drop_lines_beyond(path, *resume_step);
  }
  file_.emplace(std::move(path), os::OutputFile::Mode::kAppend);
}

void MetricsLog::write(const OrderedJson& object) {
  const std::string line = object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  const std::lock_guard lock(mutex_);
  file_->write(line);
}

}  // namespace headrace::telemetry
