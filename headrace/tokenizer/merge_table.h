// Byte-pair merges: (left id, right id) -> (rank, merged id), in one flat table with linear probing. Filled while
// loading, then const and shared by all threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::tokenizer {

struct Merge {
  uint32_t rank;  // lower is done first; kNoMerge when the pair does not merge
  int32_t id;
};
inline constexpr uint32_t kNoMerge = UINT32_MAX;

class MergeTable {
 public:
  // Room for `count` merges.
  explicit MergeTable(size_t count = 0) {
    size_t slots = 16;
    while (slots < count * 2) slots *= 2;
    slots_.resize(slots, Slot{kEmpty, kNoMerge, -1});
    mask_ = slots - 1;
  }
  // A pair given twice keeps the later rank, as in the `tokenizers` library.
  void set(int32_t left, int32_t right, Merge merge) {
    Slot& slot = slots_[index_of(key_of(left, right))];
    slot = {key_of(left, right), merge.rank, merge.id};
  }
  Merge find(int32_t left, int32_t right) const {
    const Slot& slot = slots_[index_of(key_of(left, right))];
    return {slot.rank, slot.id};  // an empty slot says kNoMerge
  }

 private:
  struct Slot {
    uint64_t key;
    uint32_t rank;
    int32_t id;
  };
  static constexpr uint64_t kEmpty = UINT64_MAX;
  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t index_of(uint64_t key) const {
    uint64_t hash = key * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
    size_t i = hash & mask_;
    while (slots_[i].key != key && slots_[i].key != kEmpty) i = (i + 1) & mask_;
    return i;
  }

  std::vector<Slot> slots_;
  size_t mask_ = 0;
};

}  // namespace headrace::tokenizer
