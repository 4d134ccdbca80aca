#include "tests/fault/power_loss_files.h"

#include <fcntl.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "headrace/base/rng.h"
#include "headrace/os/file.h"

namespace headrace::fault {
namespace {

namespace fs = std::filesystem;

constexpr int kNothing = -1;

// What is left of a file of which only `synced` is sure.
std::string left_of(const std::string& bytes, const std::string& synced, Survival::Bytes survival, Rng& rng) {
  if (bytes == synced) return synced;
  if (survival == Survival::Bytes::kRandom) survival = static_cast<Survival::Bytes>(rng.below(4));
  switch (survival) {
    case Survival::Bytes::kHalf:
      return bytes.substr(0, bytes.size() / 2);
    case Survival::Bytes::kZeros:
      return std::string(bytes.size(), '\0');
    case Survival::Bytes::kKept:
      return bytes;
    default:
      return synced;
  }
}

}  // namespace

std::vector<Fate> fates() {
  using Names = Survival::Names;
  using Bytes = Survival::Bytes;
  std::vector<Fate> all = {{"power lost, nothing unsynced survives", {Names::kLost, Bytes::kLost}},
                           {"power lost, names survive and bytes do not", {Names::kKept, Bytes::kLost}},
                           {"power lost, names survive and half of the bytes", {Names::kKept, Bytes::kHalf}},
                           {"power lost, names and lengths survive, bytes are zeros", {Names::kKept, Bytes::kZeros}},
                           {"power lost, bytes survive and names do not", {Names::kLost, Bytes::kKept}}};
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    all.push_back({"power lost, chance decides for each name and file", {Names::kRandom, Bytes::kRandom, seed}});
  }
  return all;
}

PowerLossFiles::PowerLossFiles(fs::path root) : root_(std::move(root)) {
  scan(root_);
  folders_ = synced_folders_;
}

int PowerLossFiles::scan(const fs::path& path) {
  const auto node = static_cast<int>(nodes_.size());
  nodes_.push_back({fs::is_directory(path), "", ""});
  if (!nodes_.back().is_folder) {
    nodes_.back().bytes = nodes_.back().synced_bytes = os::read_file(path);
    return node;
  }
  synced_folders_[node];
  for (const auto& entry : fs::directory_iterator(path)) {
    synced_folders_[node][entry.path().filename()] = scan(entry.path());
  }
  return node;
}

int PowerLossFiles::node_at(const fs::path& path) const {
  const Slot slot = slot_of(path);
  if (path == root_) return 0;
  if (slot.folder == kNothing) return kNothing;
  const auto found = folders_.at(slot.folder).find(slot.name);
  return found == folders_.at(slot.folder).end() ? kNothing : found->second;
}

PowerLossFiles::Slot PowerLossFiles::slot_of(const fs::path& path) const {
  const fs::path relative = path.lexically_relative(root_);
  if (relative.empty() || *relative.begin() == "..") return {};
  const int folder = relative.has_parent_path() ? node_at(path.parent_path()) : 0;
  return {folder, path.filename()};
}

void PowerLossFiles::change(std::vector<std::pair<Slot, int>> now) {
  for (const auto& [slot, node] : now) {
    if (slot.folder == kNothing) return;  // outside of root
  }
  apply(changes_.emplace_back(Change{std::move(now)}), folders_);
}

int PowerLossFiles::open(const fs::path& path, int flags, unsigned mode) {
  const int descriptor = FileSystem::open(path, flags, mode);
  if (descriptor < 0) return descriptor;
  int node = node_at(path);
  if (node == kNothing && (flags & O_CREAT) != 0) {
    node = static_cast<int>(nodes_.size());
    nodes_.emplace_back();
    change({{slot_of(path), node}});
  }
  if (node != kNothing && (flags & O_TRUNC) != 0) nodes_[node].bytes.clear();
  open_[descriptor] = node;
  return descriptor;
}

int PowerLossFiles::close(int descriptor) {
  open_.erase(descriptor);
  return FileSystem::close(descriptor);
}

int64_t PowerLossFiles::write_at(int descriptor, std::span<const std::byte> bytes, int64_t offset) {
  const int64_t wrote = FileSystem::write_at(descriptor, bytes, offset);
  const int node = open_.at(descriptor);
  if (wrote <= 0 || node == kNothing) return wrote;
  std::string& text = nodes_[node].bytes;
  text.resize(std::max(text.size(), static_cast<size_t>(offset + wrote)));
  std::copy_n(reinterpret_cast<const char*>(bytes.data()), wrote, text.begin() + offset);
  return wrote;
}

int PowerLossFiles::sync(int descriptor) {
  const int node = open_.at(descriptor);
  if (node == kNothing) return 0;
  nodes_[node].synced_bytes = nodes_[node].bytes;
  for (Change& one : changes_) {
    const auto concerns = [&](const auto& slot_and_node) { return slot_and_node.first.folder == node; };
    one.is_synced = one.is_synced || std::any_of(one.now.begin(), one.now.end(), concerns);
  }
  return 0;
}

int PowerLossFiles::make_folder(const fs::path& path) {
  const int result = FileSystem::make_folder(path);
  if (result != 0) return result;
  const auto node = static_cast<int>(nodes_.size());
  nodes_.push_back({true, "", ""});
  folders_[node];
  change({{slot_of(path), node}});
  return result;
}

int PowerLossFiles::rename(const fs::path& from, const fs::path& to) {
  const int node = node_at(from);
  const int result = FileSystem::rename(from, to);
  if (result == 0) change({{slot_of(from), kNothing}, {slot_of(to), node}});
  return result;
}

int PowerLossFiles::exchange(const fs::path& one, const fs::path& other) {
  const int result = FileSystem::exchange(one, other);
  if (result == 0) change({{slot_of(one), node_at(other)}, {slot_of(other), node_at(one)}});
  return result;
}

int PowerLossFiles::remove_file(const fs::path& path) {
  const int result = FileSystem::remove_file(path);
  if (result == 0) change({{slot_of(path), kNothing}});
  return result;
}

int PowerLossFiles::remove_folder(const fs::path& path) {
  const int result = FileSystem::remove_folder(path);
  if (result == 0) change({{slot_of(path), kNothing}});
  return result;
}

std::map<fs::path, std::string> PowerLossFiles::left(const Survival& survival) const {
  Folders folders = synced_folders_;
  Rng rng(survival.seed);
  for (const Change& one : changes_) {
    const bool is_kept =
        survival.names == Survival::Names::kKept || (survival.names == Survival::Names::kRandom && rng.below(2) == 0);
    if (one.is_synced || is_kept) apply(one, folders);
  }
  std::map<fs::path, std::string> files;
  collect(folders, 0, survival, "", files);
  return files;
}

void PowerLossFiles::apply(const Change& change, Folders& folders) {
  for (const auto& [slot, node] : change.now) {
    if (node == kNothing) {
      folders[slot.folder].erase(slot.name);
    } else {
      folders[slot.folder][slot.name] = node;
    }
  }
}

void PowerLossFiles::collect(const Folders& folders, int node, const Survival& survival, const fs::path& path,
                             std::map<fs::path, std::string>& files) const {
  if (!nodes_[node].is_folder) {
    Rng rng(survival.seed * 1000 + static_cast<uint64_t>(node));
    files[path] = left_of(nodes_[node].bytes, nodes_[node].synced_bytes, survival.bytes, rng);
    return;
  }
  files[path / ""];
  const auto names = folders.find(node);
  if (names == folders.end()) return;
  for (const auto& [name, child] : names->second) collect(folders, child, survival, path / name, files);
}

void restore(const std::map<fs::path, std::string>& left, const fs::path& into) {
  for (const auto& [path, bytes] : left) {
    fs::create_directories((into / path).parent_path());
    if (path.has_filename()) std::ofstream(into / path, std::ios::binary) << bytes;
  }
}

}  // namespace headrace::fault
