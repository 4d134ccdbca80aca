#include "headrace/store/run_lock.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/os/folder.h"
#include "headrace/store/timestamp.h"

namespace headrace::store {
namespace {

namespace fs = std::filesystem;

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::string own_note() {
  const Json note = {{"pid", ::getpid()}, {"host", host_name()}, {"since", utc_now()}};
  return note.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "process 123 on host a since ...". A note that somebody else changed is no reason to fail differently.
std::string holder_in(const std::string& note) {
  const Json holder = Json::parse(note, nullptr, false);
  const auto word = [&](const char* key) {
    if (!holder.is_object() || !holder.contains(key)) return std::string("unknown");
    const Json& value = holder[key];
    return value.is_string() ? value.get<std::string>().substr(0, 256) : value.is_number() ? value.dump() : "unknown";
  };
  return "process " + word("pid") + " on host " + word("host") + " since " + word("since");
}

fs::path made(const fs::path& folder) {
  os::create_folders(folder);
  return folder;
}

}  // namespace

RunLock::RunLock(fs::path run_folder) : run_folder_(std::move(run_folder)), file_(made(run_folder_) / "run.lock") {
  if (!file_.is_held()) {
    throw ConfigError("store.lock", "the run folder " + run_folder_.native() + " is in use by " +
                                        holder_in(file_.note()) + ". Wait for it to end or choose another folder.");
  }
  file_.write_note(own_note());
}

}  // namespace headrace::store
