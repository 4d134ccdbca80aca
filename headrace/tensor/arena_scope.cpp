#include "headrace/tensor/arena_scope.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <utility>

namespace headrace::tensor {
namespace {

struct Current {
  std::shared_ptr<memory::Arena> arena;
  memory::Kind kind = memory::Kind::kWorkspace;
};
thread_local Current current;

struct Allocation {
  std::shared_ptr<memory::Arena> arena;
  std::byte* address;
};

void free_allocation(void* context) {
  const std::unique_ptr<Allocation> allocation(static_cast<Allocation*>(context));
  allocation->arena->free(allocation->address);
}

// Stands before libtorch's own allocator and passes on what no scope claims.
class ScopedAllocator final : public c10::Allocator {
 public:
  explicit ScopedAllocator(c10::Allocator* otherwise) : otherwise_(otherwise) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (current.arena == nullptr || bytes == 0) return otherwise_->allocate(bytes);
    std::byte* address = current.arena->allocate(current.kind, static_cast<int64_t>(bytes));
    return {address, new Allocation{current.arena, address}, &free_allocation, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  c10::Allocator* otherwise_;
};

// Once a process, for good: tensors made before keep their own deleters.
void install() {
  [[maybe_unused]] static const bool is_installed = [] {
    static ScopedAllocator allocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(&allocator, /*priority=*/1);
    return true;
  }();
}

}  // namespace

ArenaScope::ArenaScope(std::shared_ptr<memory::Arena> arena, memory::Kind kind)
    : previous_arena_(std::exchange(current.arena, std::move(arena))),
      previous_kind_(std::exchange(current.kind, kind)) {
  install();
}

ArenaScope::~ArenaScope() {
  current.arena = std::move(previous_arena_);
  current.kind = previous_kind_;
}

}  // namespace headrace::tensor
