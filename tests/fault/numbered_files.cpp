#include "tests/fault/numbered_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace headrace::fault {

namespace fs = std::filesystem;

NumberedFiles::NumberedFiles(Plan plan, os::FileSystem& inner) : plan_(plan), inner_(inner) {}

os::FileSystem& NumberedFiles::unsynced() {
  static UnsyncedFiles calls;
  return calls;
}

int64_t NumberedFiles::num_calls() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(calls_);
}

std::string NumberedFiles::call(int64_t number) const {
  const std::lock_guard lock(mutex_);
  return number < std::ssize(calls_) ? calls_[static_cast<size_t>(number)] : "";
}

NumberedFiles::Do NumberedFiles::next(const std::string& verb, const fs::path& path) {
  const std::lock_guard lock(mutex_);
  const int64_t number = std::ssize(calls_);
  calls_.push_back(verb + " " + path.filename().native());
  const bool is_it = number == plan_.at;
  switch (plan_.what) {
    case Plan::What::kNothing:
      return Do::kCall;
    case Plan::What::kExit:
      if (is_it) ::_exit(kKilled);
      return Do::kCall;
    case Plan::What::kExitHalfway:
      return is_it ? Do::kPart : Do::kCall;
    case Plan::What::kShorten:
      return is_it || plan_.at < 0 ? Do::kPart : Do::kCall;
    case Plan::What::kFail:
      return is_it ? Do::kFail : Do::kCall;
    case Plan::What::kFailFromThen:
      return number >= plan_.at ? Do::kFail : Do::kCall;
  }
  return Do::kCall;
}

fs::path NumberedFiles::path_of(int descriptor) const {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(descriptor);
  return found == open_.end() ? fs::path("?") : found->second;
}

template <typename Call>
auto NumberedFiles::step(const std::string& verb, const fs::path& path, const Call& call) -> decltype(call()) {
  const Do what = next(verb, path);
  if (what == Do::kFail) {
    errno = plan_.error_number;
    return -1;
  }
  const auto result = call();
  if (what == Do::kPart && plan_.what == Plan::What::kExitHalfway) ::_exit(kKilled);
  return result;
}

int NumberedFiles::open(const fs::path& path, int flags, unsigned mode) {
  return step("open", path, [&] {
    const int descriptor = inner_.open(path, flags, mode);
    const std::lock_guard lock(mutex_);
    if (descriptor >= 0) open_[descriptor] = path;
    return descriptor;
  });
}

// A descriptor whose close fails is closed all the same, as on Linux.
int NumberedFiles::close(int descriptor) {
  const fs::path path = path_of(descriptor);
  {
    const std::lock_guard lock(mutex_);
    open_.erase(descriptor);
  }
  const int result = step("close", path, [&] { return inner_.close(descriptor); });
  if (result < 0) {
    const int error = errno;
    inner_.close(descriptor);
    errno = error;
  }
  return result;
}

int64_t NumberedFiles::read(int descriptor, std::span<std::byte> bytes) {
  const Do what = next("read", path_of(descriptor));
  if (what == Do::kFail) {
    errno = plan_.error_number;
    return -1;
  }
  if (what == Do::kPart && plan_.what == Plan::What::kExitHalfway) ::_exit(kKilled);
  return inner_.read(descriptor, what == Do::kPart ? bytes.first(std::min<size_t>(1, bytes.size())) : bytes);
}

int64_t NumberedFiles::write_at(int descriptor, std::span<const std::byte> bytes, int64_t offset) {
  const Do what = next("write", path_of(descriptor));
  if (what == Do::kFail) {
    errno = plan_.error_number;
    return -1;
  }
  if (what == Do::kCall) return inner_.write_at(descriptor, bytes, offset);
  const bool is_last = plan_.what == Plan::What::kExitHalfway;
  const int64_t wrote = inner_.write_at(descriptor, bytes.first(is_last ? bytes.size() / 2 : 1), offset);
  if (is_last) ::_exit(kKilled);
  return wrote;
}

int NumberedFiles::sync(int descriptor) {
  return step("sync", path_of(descriptor), [&] { return inner_.sync(descriptor); });
}

int NumberedFiles::make_folder(const fs::path& path) {
  return step("make folder", path, [&] { return inner_.make_folder(path); });
}

int NumberedFiles::rename(const fs::path& from, const fs::path& to) {
  return step("rename to", to, [&] { return inner_.rename(from, to); });
}

int NumberedFiles::exchange(const fs::path& one, const fs::path& other) {
  return step("swap with", other, [&] {
    if (plan_.can_exchange) return inner_.exchange(one, other);
    errno = EINVAL;
    return -1;
  });
}

int NumberedFiles::remove_file(const fs::path& path) {
  return step("remove", path, [&] { return inner_.remove_file(path); });
}

int NumberedFiles::remove_folder(const fs::path& path) {
  return step("remove folder", path, [&] { return inner_.remove_folder(path); });
}

int64_t NumberedFiles::free_bytes(const fs::path& path) {
  return step("ask free bytes of", path, [&] { return inner_.free_bytes(path); });
}

}  // namespace headrace::fault
