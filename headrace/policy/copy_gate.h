// Keeps the compute lane from changing a block that is still to be copied for a checkpoint, so that training goes on
// while another thread copies block after block. Host workers do not wait here but are held (graph/executor.h): a lane
// that waits would seem to hang. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace headrace::policy {

class CopyGate {
 public:
  explicit CopyGate(size_t num_blocks) : is_closed_(num_blocks) {}

  // Closes all blocks, once those of an earlier copy are open. They open one by one, or all when the last holder lets
  // go of what this returns.
  static std::shared_ptr<CopyGate> close(const std::shared_ptr<CopyGate>& gate);
  void open(size_t block);

  // Returns when the block is open: before it is changed.
  void pass(size_t block);
  void pass_all();
  // [s] that all threads together waited in pass() and pass_all() since the blocks were closed last.
  double waited_s() const;

 private:
  void close_all();
  void open_all();
  template <class IsOpen>
  void wait(const IsOpen& is_open);

  std::atomic<size_t> num_closed_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  std::vector<bool> is_closed_;  // by block; guarded by mutex_
  double waited_s_ = 0;          // likewise
};

}  // namespace headrace::policy
