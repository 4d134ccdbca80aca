// Where libtorch's tensors come from: inside a scope, everything that this thread allocates on the CPU device comes
// from an arena and is charged to its budget; outside, and on any other thread, from libtorch's own allocator as ever.
#pragma once

#include <memory>

#include "headrace/memory/arena.h"

namespace headrace::tensor {

// Scopes nest: the innermost holds. A tensor may outlive the scope, and the arena lives as long as its last tensor.
// Allocation throws CapacityError when the arena or its budget refuses. Thread-local.
class ArenaScope {
 public:
  ArenaScope(std::shared_ptr<memory::Arena> arena, memory::Kind kind);
  ~ArenaScope();
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  std::shared_ptr<memory::Arena> previous_arena_;
  memory::Kind previous_kind_;
};

}  // namespace headrace::tensor
