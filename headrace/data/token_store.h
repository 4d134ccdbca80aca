// Tokens and their masks in 4 bytes each, in blocks that never move: growing costs no copy of what is there.
// One writer; afterwards any number of readers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace headrace::data {

class TokenStore {
 public:
  // Ids in [0, 2^31). `trained` is as long as `ids`.
  void append(std::span<const int32_t> ids, std::span<const uint8_t> trained);
  int64_t size() const { return size_; }
  int32_t id(int64_t index) const { return static_cast<int32_t>(word(index) & ~kTrained); }
  bool is_trained(int64_t index) const { return (word(index) & kTrained) != 0; }
  uint32_t word(int64_t index) const { return blocks_[index / kBlock][index % kBlock]; }
  int64_t memory_bytes() const { return static_cast<int64_t>(blocks_.size()) * kBlock * 4; }
  // The words in order, in as few spans as there are blocks.
  std::vector<std::span<const uint32_t>> blocks() const;

 private:
  static constexpr int64_t kBlock = 1 << 18;  // [tokens] 1 MiB
  static constexpr uint32_t kTrained = 1u << 31;
  std::vector<std::unique_ptr<uint32_t[]>> blocks_;
  int64_t size_ = 0;
};

}  // namespace headrace::data
