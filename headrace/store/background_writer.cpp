#include "headrace/store/background_writer.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "headrace/store/keep.h"

namespace headrace::store {

Snapshot copy_snapshot(int64_t step, std::span<const TensorView> tensors, Json state) {
  size_t total = 0;
  for (const TensorView& tensor : tensors) total += tensor.bytes.size();
  auto buffer = std::make_shared<std::vector<std::byte>>();
  buffer->reserve(total);  // views into it must not move
  Snapshot snapshot{step, {tensors.begin(), tensors.end()}, std::move(state), buffer};
  for (TensorView& tensor : snapshot.tensors) {
    const size_t begin = buffer->size();
    buffer->insert(buffer->end(), tensor.bytes.begin(), tensor.bytes.end());
    tensor.bytes = std::span(*buffer).subspan(begin);
  }
  return snapshot;
}

BackgroundWriter::BackgroundWriter(const RunLock& lock, BackgroundOptions options)
    : lock_(lock), options_(std::move(options)), thread_([this] { run(); }) {}

BackgroundWriter::~BackgroundWriter() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (!error_ || !options_.on_unseen_error) return;
  try {
    std::rethrow_exception(error_);
  } catch (const std::exception& error) {
    options_.on_unseen_error(error.what());
  }
}

void BackgroundWriter::start(Snapshot snapshot) {
  start([this, shared = std::make_shared<Snapshot>(std::move(snapshot))] { write(*shared); });
}

void BackgroundWriter::start(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !is_busy_; });
  rethrow_error();
  next_ = std::move(task);
  is_busy_ = true;
  changed_.notify_all();
}

std::vector<FinishedWrite> BackgroundWriter::poll() {
  const std::lock_guard lock(mutex_);
  rethrow_error();
  return std::exchange(finished_, {});
}

std::vector<FinishedWrite> BackgroundWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !is_busy_; });
  rethrow_error();
  return std::exchange(finished_, {});
}

bool BackgroundWriter::is_writing() const {
  const std::lock_guard lock(mutex_);
  return is_busy_;
}

void BackgroundWriter::rethrow_error() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void BackgroundWriter::run() {
  if (options_.on_thread_start) options_.on_thread_start();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_ending_ || next_; });
    if (!next_) return;
    std::function<void()> task = std::exchange(next_, nullptr);
    lock.unlock();
    std::exception_ptr error;
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
    task = nullptr;
    lock.lock();
    error_ = std::move(error);
    is_busy_ = false;
    changed_.notify_all();
  }
}

void BackgroundWriter::write(Snapshot& snapshot) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
  const Clock::time_point copied_since = Clock::now();
  if (snapshot.copy_tensors) snapshot.tensors = snapshot.copy_tensors();
  const Clock::time_point begin = Clock::now();
  auto checkpoint = write_checkpoint(lock_, snapshot.step, snapshot.tensors, snapshot.state, options_.write);
  if (!checkpoint) return;
  const Clock::time_point end = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    finished_.push_back({std::move(*checkpoint), seconds(begin - copied_since), seconds(end - begin)});
  }
  if (options_.keep_last > 0) keep_last(lock_, options_.keep_last);
}

}  // namespace headrace::store
