// Writes checkpoints on a thread of its own, one at a time, while training goes on. The owner's thread calls; the
// writer's thread touches nothing but the snapshot it was given and the run folder.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/store/write.h"

namespace headrace::store {

struct Snapshot {
  int64_t step = 0;
  std::vector<TensorView> tensors;
  Json state;
  std::shared_ptr<const void> buffers;  // what keeps the tensors' bytes alive and unchanged; let go of once written
  // Where not empty, called first in the writer's thread for `tensors`: to copy what may still change. What it throws
  // ends the write.
  std::function<std::vector<TensorView>()> copy_tensors = {};
};

// A snapshot with its own copy of all bytes.
Snapshot copy_snapshot(int64_t step, std::span<const TensorView> tensors, Json state);

struct BackgroundOptions {
  WriteOptions write;     // on_progress is called in the writer's thread
  int64_t keep_last = 0;  // >= 1: keep_last() with this after each write; 0 keeps all
  // The text of an error that the owner never asked for, from the destructor, in the owner's thread. Must not throw.
  std::function<void(const std::string&)> on_unseen_error;
  // The first thing that the writer's thread does, for example to bind itself to processors. Must not throw.
  std::function<void()> on_thread_start;
};

struct FinishedWrite {
  CheckpointInfo checkpoint;
  double copy_time_s = 0;  // of copy_tensors
  double write_time_s = 0;
};

class BackgroundWriter {
 public:
  // The lock must outlive the writer.
  BackgroundWriter(const RunLock& lock, BackgroundOptions options);
  // Waits for the write in progress.
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // Each of these four throws what the last write threw, once; afterwards the writer is ready for the next snapshot.
  // start() waits for the write before, then returns at once; when it throws, the snapshot was not taken.
  void start(Snapshot snapshot);
  // Likewise for anything else that the writer's thread shall do, before the next snapshot.
  void start(std::function<void()> task);
  // What was finished since the last call, oldest first (given-up writes are left out). Does not wait.
  std::vector<FinishedWrite> poll();
  // Waits until nothing is being written, then as poll().
  std::vector<FinishedWrite> wait();

  bool is_writing() const;

 private:
  void run();
  void write(Snapshot& snapshot);
  void rethrow_error();  // with mutex_ held

  const RunLock& lock_;
  const BackgroundOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> next_;  // given, not yet taken by the thread
  bool is_busy_ = false;        // from start() until the snapshot is written and let go of
  bool is_ending_ = false;
  std::exception_ptr error_;
  std::vector<FinishedWrite> finished_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace headrace::store
