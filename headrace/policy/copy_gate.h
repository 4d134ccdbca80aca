// Keeps steps from changing a block that is still to be copied for a checkpoint, so that training goes on while another
// thread copies block after block. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace headrace::policy {

class CopyGate {
 public:
  explicit CopyGate(size_t num_blocks) : is_closed_(num_blocks) {}

  // Closes all blocks to the step with this number and later ones, once those of an earlier copy are open. They open
  // one by one, or all when the last holder lets go of what this returns. A policy whose steps do not overlap need not
  // number them.
  static std::shared_ptr<CopyGate> close(const std::shared_ptr<CopyGate>& gate, int64_t first_step = 0);
  void open(size_t block);

  // Returns when the block is open to the step: before it is changed.
  void pass(size_t block, int64_t step = 0);
  void pass_all();
  // [s] that all threads together waited in pass() and pass_all() since the blocks were closed last.
  double waited_s() const;

 private:
  void close_all(int64_t first_step);
  void open_all();
  template <class IsOpen>
  void wait(const IsOpen& is_open);

  std::atomic<size_t> num_closed_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  std::vector<bool> is_closed_;  // by block; guarded by mutex_
  int64_t first_step_ = 0;       // that it is closed to; likewise
  double waited_s_ = 0;          // likewise
};

}  // namespace headrace::policy
