#include "headrace/data/token_store.h"

#include <algorithm>

namespace headrace::data {

void TokenStore::append(std::span<const int32_t> ids, std::span<const uint8_t> trained) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (size_ == static_cast<int64_t>(blocks_.size()) * kBlock) {
      blocks_.push_back(std::make_unique_for_overwrite<uint32_t[]>(kBlock));
    }
    blocks_.back()[size_ % kBlock] = static_cast<uint32_t>(ids[i]) | (trained[i] ? kTrained : 0);
    ++size_;
  }
}

std::vector<std::span<const uint32_t>> TokenStore::blocks() const {
  std::vector<std::span<const uint32_t>> spans;
  for (int64_t begin = 0; begin < size_; begin += kBlock) {
    spans.emplace_back(blocks_[begin / kBlock].get(), static_cast<size_t>(std::min(kBlock, size_ - begin)));
  }
  return spans;
}

}  // namespace headrace::data
