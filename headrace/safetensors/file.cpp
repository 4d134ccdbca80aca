#include "headrace/safetensors/file.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace headrace::safetensors {

File File::open(const std::filesystem::path& path) {
  os::MappedFile mapping(path);
  Header header = parse_header(mapping.bytes(), path.native());
  return File(std::move(mapping), std::move(header));
}

File::File(os::MappedFile mapping, Header header) : mapping_(std::move(mapping)), header_(std::move(header)) {
  by_name_.resize(tensors().size());
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [&](size_t a, size_t b) { return tensors()[a].name < tensors()[b].name; });
}

const TensorInfo* File::find(std::string_view name) const {
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                      [&](size_t at, std::string_view wanted) { return tensors()[at].name < wanted; });
  if (found == by_name_.end() || tensors()[*found].name != name) return nullptr;
  return &tensors()[*found];
}

std::span<const std::byte> File::bytes(const TensorInfo& info) const {
  return mapping_.bytes().subspan(static_cast<size_t>(info.begin), static_cast<size_t>(info.end - info.begin));
}

void File::done_with(const TensorInfo& info) const noexcept {
  mapping_.done_with(static_cast<size_t>(info.begin), static_cast<size_t>(info.end - info.begin));
}

}  // namespace headrace::safetensors
