#include "headrace/store/list.h"

#include <algorithm>
#include <map>
#include <system_error>

#include "headrace/base/errors.h"
#include "headrace/os/input_file.h"
#include "headrace/store/names.h"

namespace headrace::store {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLatestBytes = 64;

// The whole of a small regular file, one byte more than allowed at most.
std::string small_text(const fs::path& path, size_t max_bytes) {
  os::InputFile file(path);
  std::string text(std::min(static_cast<size_t>(file.size_bytes()), max_bytes) + 1, '\0');
  text.resize(file.read(std::as_writable_bytes(std::span(text))));
  return text;
}

Manifest read_manifest(const fs::path& folder, int64_t step) {
  const fs::path path = folder / kManifestName;
  Manifest manifest = parse_manifest(small_text(path, kMaxManifestBytes), path.native());
  if (manifest.step == step) return manifest;
  throw DataError("store.list", path.native() + ": is of step " + std::to_string(manifest.step) + ", its folder of " +
                                    std::to_string(step) + ".");
}

std::string kind_fault(const fs::path& path, fs::file_type wanted) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type == wanted) return "";
  if (type == fs::file_type::not_found) return path.native() + " is missing.";
  if (type == fs::file_type::symlink) return path.native() + " is a link; checkpoints hold none.";
  if (error) return path.native() + " cannot be examined: " + error.message() + ".";
  return path.native() + (wanted == fs::file_type::directory ? " is no folder." : " is not a regular file.");
}

// step -> folder. A checkpoint that was about to be replaced counts until the new one has its place.
std::map<int64_t, fs::path> folders_by_step(const fs::path& checkpoints) {
  std::map<int64_t, fs::path> folders, replaced;
  std::error_code error;
  fs::directory_iterator at(checkpoints, error), end;
  for (; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().native();
    if (const auto step = step_in(name)) folders[*step] = at->path();
    const auto hidden = hidden_in(name);
    if (hidden && hidden->what == Hidden::kReplaced) replaced[hidden->step] = at->path();
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw IoError("store.list", "cannot list", checkpoints.native(), error.value());
  }
  folders.merge(replaced);
  return folders;
}

}  // namespace

std::string file_fault(const fs::path& folder, const FileEntry& entry) {
  const fs::path path = folder / entry.name;
  if (std::string fault = kind_fault(path, fs::file_type::regular); !fault.empty()) return fault;
  std::error_code error;
  const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (error) return path.native() + " cannot be examined: " + error.message() + ".";
  if (bytes == entry.bytes) return "";
  return path.native() + " has " + std::to_string(bytes) + " bytes; " + std::to_string(entry.bytes) + " were written.";
}

CheckpointInfo read_info(const fs::path& folder, int64_t step) {
  CheckpointInfo info{folder, step, {}, kind_fault(folder, fs::file_type::directory)};
  if (info.fault.empty()) info.fault = kind_fault(folder / kManifestName, fs::file_type::regular);
  if (!info.fault.empty()) return info;
  try {
    info.manifest = read_manifest(folder, step);
  } catch (const Error& error) {
    info.fault = error.what();
    return info;
  }
  for (const FileEntry& entry : info.manifest.files) {
    if (info.fault.empty()) info.fault = file_fault(folder, entry);
  }
  return info;
}

std::vector<CheckpointInfo> list_checkpoints(const fs::path& run_folder) {
  std::vector<CheckpointInfo> infos;
  const auto folders = folders_by_step(checkpoints_of(run_folder));
  for (auto at = folders.rbegin(); at != folders.rend(); ++at) infos.push_back(read_info(at->second, at->first));
  return infos;
}

std::string read_latest(const fs::path& run_folder) {
  const fs::path checkpoints = checkpoints_of(run_folder);
  std::string name;
  try {
    name = small_text(checkpoints / kLatestName, kMaxLatestBytes);
  } catch (const IoError&) {
    return "";  // there is none, or it cannot be read: then it says nothing
  }
  if (name.ends_with('\n')) name.pop_back();
  const auto step = step_in(name);
  return step && folders_by_step(checkpoints).contains(*step) ? name : "";
}

}  // namespace headrace::store
