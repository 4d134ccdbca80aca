// Working memory of a step: one range of addresses, reserved once, from which tensors come and to which they go back.
// Lowest fitting address first, neighbours joined when freed, so that the same step finds the same places and the
// system is asked for nothing once the first step has touched its pages.
// Any thread; one lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "headrace/memory/budget.h"

namespace headrace::memory {

class Arena {
 public:
  static constexpr int64_t kAlignment = 64;  // [bytes] of every allocation's address and length

  // Reserves `capacity` bytes of addresses; pages become real when touched. `budget` is charged for what is in use.
  // Throws CapacityError when the system has no such range.
  Arena(std::shared_ptr<Budget> budget, int64_t capacity);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Not initialised; null for 0 bytes. Throws CapacityError when the budget refuses or no free run is long enough.
  std::byte* allocate(Kind kind, int64_t bytes);
  // Throws InternalError for an address that was not allocated or was freed already. Null is ignored.
  void free(std::byte* address);

  int64_t capacity() const { return capacity_; }
  // [bytes] up to the highest address ever used: what the arena costs in real memory.
  int64_t extent() const;
  int64_t num_in_use() const;

 private:
  struct Run {
    int64_t bytes;
    Kind kind;
  };

  const std::shared_ptr<Budget> budget_;
  const int64_t capacity_;
  std::byte* base_ = nullptr;
  mutable std::mutex mutex_;
  std::map<int64_t, int64_t> free_;  // offset -> bytes, never two neighbours
  std::map<int64_t, Run> used_;      // by offset
  int64_t extent_ = 0;
};

// As large as the machine's memory: for a device that is the host itself. Without a budget there is no limit.
std::shared_ptr<Arena> make_host_arena(std::shared_ptr<Budget> budget = nullptr);

}  // namespace headrace::memory
