// Fibers begin as contexts and from then on switch by jumps, which cost no system call; but for AddressSanitizer, which
// looks at the whole stack at each jump.
#include <ucontext.h>

#include <csetjmp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "headrace/base/rng.h"
#include "tests/support/simt/cuda_runtime.h"

#ifdef __SANITIZE_ADDRESS__
#define SIMT_JUMPS 0
#else
#define SIMT_JUMPS 1
#endif

namespace simt {
namespace {

constexpr size_t kStackBytes = 64 << 10;

// Runs threads one after the other until one of them stops at a barrier.
struct Fiber {
  ucontext_t context{};
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
  jmp_buf here;  // where it goes on
  bool has_begun = false;
  bool is_waiting = false;  // at a barrier, for the thread that runs in it
  dim3 thread{};
};

// One block at a time; fibers are kept for the next.
class Block {
 public:
  void run(unsigned threads, headrace::Rng& rng, const std::function<void()>& body) {
    body_ = &body;
    next_ = 0;
    order_.resize(threads);
    std::iota(order_.begin(), order_.end(), 0U);
    rng.shuffle(order_);
    while (next_ < order_.size()) enter(idle_fiber());
    while (!waiting_.empty()) release(rng);
  }

  void barrier() {
    Fiber* fiber = current_;
    fiber->thread = place().thread;
    fiber->is_waiting = true;
    waiting_.push_back(fiber);
    leave(*fiber);
  }

 private:
  // All that have not ended are at the barrier.
  void release(headrace::Rng& rng) {
    std::vector<Fiber*> ready = std::exchange(waiting_, {});
    rng.shuffle(ready);
    for (Fiber* fiber : ready) {
      fiber->is_waiting = false;
      place().thread = fiber->thread;
      enter(fiber);
    }
  }

  void enter(Fiber* fiber) {
    current_ = fiber;
#if SIMT_JUMPS
    if (_setjmp(caller_) == 0) {
      if (std::exchange(fiber->has_begun, true)) _longjmp(fiber->here, 1);
      setcontext(&fiber->context);
    }
#else
    swapcontext(&caller_context_, &fiber->context);
#endif
    if (!current_->is_waiting) idle_.push_back(current_);
  }

  void leave(Fiber& fiber) {
#if SIMT_JUMPS
    if (_setjmp(fiber.here) == 0) _longjmp(caller_, 1);
#else
    swapcontext(&fiber.context, &caller_context_);
#endif
  }

  Fiber* idle_fiber() {
    if (idle_.empty()) idle_.push_back(make_fiber());
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    return fiber;
  }

  Fiber* make_fiber() {
    Fiber* fiber = fibers_.emplace_back(std::make_unique<Fiber>()).get();
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack.get();
    fiber->context.uc_stack.ss_size = kStackBytes;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&fiber->context, reinterpret_cast<void (*)()>(&Block::work), 2, static_cast<unsigned>(self),
                static_cast<unsigned>(self >> 32));
    return fiber;
  }

  // Never returns: an idle fiber goes on with the next block's threads.
  static void work(unsigned low, unsigned high) {
    auto& block = *reinterpret_cast<Block*>(uintptr_t{high} << 32 | low);
    Fiber& self = *block.current_;
    for (;;) {
      while (block.next_ < block.order_.size()) {
        place().thread = dim3(block.order_[block.next_++]);
        (*block.body_)();
      }
      block.leave(self);
    }
  }

  const std::function<void()>* body_ = nullptr;
  std::vector<unsigned> order_;  // of threads
  size_t next_ = 0;              // to begin
  jmp_buf caller_;
  ucontext_t caller_context_{};
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_, waiting_;
  Fiber* current_ = nullptr;
};

Block& block() {
  static Block the_only;
  return the_only;
}

bool is_valid(const dim3& grid) {
  constexpr unsigned kMaxWidth = 2147483647, kMaxHeight = 65535;  // CUDA C++ Programming Guide, compute capabilities
  return grid.x > 0 && grid.x <= kMaxWidth && grid.y > 0 && grid.y <= kMaxHeight && grid.z == 1;
}

thread_local Error last_error = Error::kNone;

}  // namespace

Place& place() {
  static Place current;
  return current;
}

void run(dim3 grid, unsigned threads, const std::function<void()>& body) {
  if (!is_valid(grid)) {
    last_error = Error::kInvalidGrid;
    return;
  }
  static std::mutex mutex;
  static headrace::Rng rng(20261201);
  const std::lock_guard lock(mutex);
  std::vector<unsigned> order(static_cast<size_t>(grid.x) * grid.y);
  std::iota(order.begin(), order.end(), 0U);
  rng.shuffle(order);
  place().grid = grid;
  for (const unsigned index : order) {
    place().block = dim3(index % grid.x, index / grid.x);
    block().run(threads, rng, body);
  }
}

void barrier() { block().barrier(); }

Error take_error() { return std::exchange(last_error, Error::kNone); }

}  // namespace simt
