#include "headrace/memory/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/units.h"

namespace headrace::memory {

Arena::Arena(std::shared_ptr<Budget> budget, int64_t capacity)
    : budget_(std::move(budget)), capacity_(capacity / kAlignment * kAlignment) {
  if (capacity_ <= 0) throw InternalError("memory.arena", std::to_string(capacity) + " bytes of capacity.");
  void* range = mmap(nullptr, static_cast<size_t>(capacity_), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    throw CapacityError("memory.arena", "the system refuses " + format_bytes(capacity_) +
                                            " of addresses: " + std::strerror(errno) + ". Raise ulimit -v.");
  }
  // Fewer page faults and shorter address walks; without it everything works as well.
  madvise(range, static_cast<size_t>(capacity_), MADV_HUGEPAGE);
  base_ = static_cast<std::byte*>(range);
  budget_->count_system_allocation();
  free_[0] = capacity_;
}

Arena::~Arena() { munmap(base_, static_cast<size_t>(capacity_)); }

std::byte* Arena::allocate(Kind kind, int64_t bytes) {
  if (bytes == 0) return nullptr;
  const int64_t length = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard lock(mutex_);
  const auto run = std::find_if(free_.begin(), free_.end(), [&](const auto& each) { return each.second >= length; });
  if (run == free_.end()) {
    int64_t longest = 0;
    for (const auto& each : free_) longest = std::max(longest, each.second);
    throw CapacityError("memory.arena",
                        format_bytes(length) + " of " + std::string(name_of(kind)) + " do not fit: of " +
                            format_bytes(capacity_) + " of working memory the longest free run is " +
                            format_bytes(longest) +
                            ". Raise --device-budget, lower --batch or --max-length, or add --recompute.");
  }
  budget_->take(kind, length);
  const auto [offset, free_bytes] = *run;
  free_.erase(run);
  if (free_bytes > length) free_[offset + length] = free_bytes - length;
  used_[offset] = {length, kind};
  extent_ = std::max(extent_, offset + length);
  return base_ + offset;
}

void Arena::free(std::byte* address) {
  if (address == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto used = used_.find(address - base_);
  if (used == used_.end()) throw InternalError("memory.arena", "an address is freed that is not in use.");
  int64_t offset = used->first, length = used->second.bytes;
  budget_->give(used->second.kind, length);
  used_.erase(used);
  const auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      length += before->second;
      free_.erase(before);
    }
  }
  if (next != free_.end() && offset + length == next->first) {
    length += next->second;
    free_.erase(next);
  }
  free_[offset] = length;
}

int64_t Arena::extent() const {
  const std::lock_guard lock(mutex_);
  return extent_;
}

int64_t Arena::num_in_use() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(used_.size());
}

std::shared_ptr<Arena> make_host_arena(std::shared_ptr<Budget> budget) {
  const int64_t physical = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (budget == nullptr) budget = std::make_shared<Budget>("host", /*limit=*/0, "--host-budget");
  return std::make_shared<Arena>(std::move(budget), physical);
}

}  // namespace headrace::memory
