#include "headrace/telemetry/metrics_log.h"

#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "headrace/os/file.h"

namespace headrace::telemetry {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(const os::MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

bool is_beyond(std::string_view line, int64_t step) {
  const Json object = Json::parse(line.begin(), line.end(), nullptr, false);
  return object.is_object() && object.contains("step") && is_int(object["step"]) && object["step"] > step;
}

// Leaves the lines that are whole and do not lie beyond `last_step`.
void repair(const fs::path& path, std::optional<int64_t> last_step) {
  std::string kept;
  size_t size = 0;
  {
    const os::MappedFile file(path);
    std::string_view rest = text_of(file);
    size = rest.size();
    for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      const std::string_view line = rest.substr(0, end + 1);
      if (!last_step || !is_beyond(line, *last_step)) kept += line;
      rest.remove_prefix(line.size());
    }
  }
  if (kept.size() != size) os::write_file_atomically(path, kept);
}

}  // namespace

MetricsLog::MetricsLog(fs::path path, std::optional<int64_t> resume_step) {
  std::error_code error;
  if (fs::exists(path, error)) repair(path, resume_step);
  file_.emplace(std::move(path), os::OutputFile::Mode::kAppend);
}

void MetricsLog::write(const OrderedJson& object) {
  const std::string line = object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  const std::lock_guard lock(mutex_);
  file_->write(line);
}

}  // namespace headrace::telemetry
