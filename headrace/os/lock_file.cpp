#include "headrace/os/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <span>
#include <utility>

namespace headrace::os {

LockFile::LockFile(std::filesystem::path path) : path_(std::move(path)) {
  do {
    descriptor_.emplace("os.lock", path_, O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
    is_held_ = uninterrupted([&] { return ::flock(descriptor_->get(), LOCK_EX | LOCK_NB); }) == 0;
    if (!is_held_ && errno != EWOULDBLOCK) throw io_error("os.lock", "cannot lock", path_, errno);
  } while (is_held_ && !is_at_its_path());
}

bool LockFile::is_at_its_path() const {
  struct stat ours {};
  struct stat there {};
  if (::fstat(descriptor_->get(), &ours) != 0) throw io_error("os.lock", "cannot examine", path_, errno);
  if (::stat(path_.c_str(), &there) != 0) return false;
  return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

std::string LockFile::note() const {
  std::string note(kMaxNoteBytes, '\0');
  // A descriptor of its own: ours has no place to read from that others could not move.
  const Descriptor reader("os.lock", path_, O_RDONLY | O_NOFOLLOW);
  note.resize(read_fully("os.lock", reader.get(), std::as_writable_bytes(std::span(note)), 0, path_));
  while (!note.empty() && note.back() == ' ') note.pop_back();
  return note;
}

// Spaces up to the full length wipe what an earlier holder left.
void LockFile::write_note(std::string_view note) {
  std::string line(note.substr(0, kMaxNoteBytes));
  line.resize(kMaxNoteBytes, ' ');
  write_fully("os.lock", descriptor_->get(), std::as_bytes(std::span(line)), 0, path_);
}

}  // namespace headrace::os
