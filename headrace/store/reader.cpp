#include "headrace/store/reader.h"

#include <algorithm>
#include <map>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "headrace/safetensors/header_reader.h"
#include "headrace/store/names.h"
#include "headrace/store/write.h"

namespace headrace::store {
namespace {

using safetensors::in_quotes;

constexpr std::string_view kPlace = "store.open";

Json read_state(const std::filesystem::path& path, const FileEntry& entry) {
  if (entry.bytes > kMaxStateBytes) {
    throw DataError(kPlace, path.native() + ": has " + std::to_string(entry.bytes) + " bytes; at most " +
                                std::to_string(kMaxStateBytes) + " are allowed.");
  }
  return parse_json(os::read_file(path, kMaxStateBytes), kPlace, path.native());
}

}  // namespace

CheckpointReader CheckpointReader::open(const CheckpointInfo& info) {
  if (!info.is_complete()) throw DataError(kPlace, info.folder.native() + " is damaged: " + info.fault);
  CheckpointReader reader;
  reader.folder_ = info.folder;
  reader.step_ = info.step;
  for (const FileEntry& entry : info.manifest.files) {
    if (const std::string fault = file_fault(info.folder, entry); !fault.empty()) throw DataError(kPlace, fault);
    const std::filesystem::path path = info.folder / entry.name;
    if (entry.name == kStateName) reader.state_ = read_state(path, entry);
    if (entry.name.ends_with(".safetensors")) reader.files_.push_back(safetensors::File::open(path));
  }
  reader.index();
  return reader;
}

void CheckpointReader::index() {
  std::map<std::string_view, Place> places;
  for (size_t i = 0; i < files_.size(); ++i) {
    for (const safetensors::TensorInfo& tensor : files_[i].tensors()) {
      const auto [twin, is_new] = places.emplace(tensor.name, Place{i, &tensor});
      if (is_new) continue;
      throw DataError(kPlace, "tensor " + in_quotes(tensor.name) + " lies both in " +
                                  files_[twin->second.file].path().native() + " and in " + files_[i].path().native() +
                                  ".");
    }
  }
  for (const auto& [name, place] : places) {
    names_.emplace_back(name);
    places_.push_back(place);
  }
}

const CheckpointReader::Place* CheckpointReader::find(std::string_view name) const {
  const auto found = std::lower_bound(names_.begin(), names_.end(), name);
  if (found == names_.end() || *found != name) return nullptr;
  return &places_[static_cast<size_t>(found - names_.begin())];
}

const CheckpointReader::Place& CheckpointReader::place_of(std::string_view name) const {
  if (const Place* place = find(name)) return *place;
  throw DataError("store.find", folder_.native() + " holds no tensor " + in_quotes(name) + " among its " +
                                    std::to_string(names_.size()) + ".");
}

const safetensors::TensorInfo& CheckpointReader::info(std::string_view name) const { return *place_of(name).info; }

std::span<const std::byte> CheckpointReader::bytes(std::string_view name) const {
  const Place& place = place_of(name);
  return files_[place.file].bytes(*place.info);
}

void CheckpointReader::done_with(std::string_view name) const noexcept {
  if (const Place* place = find(name)) files_[place->file].done_with(*place->info);
}

}  // namespace headrace::store
