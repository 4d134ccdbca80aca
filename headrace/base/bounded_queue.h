// A blocking queue of limited length with one end: how ownership moves between threads.
// Any number of producers and consumers. close() ends every wait; fail() ends every wait with an error.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

namespace headrace {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // Waits for room. False when the queue was closed: the item is dropped and the producer should stop.
  bool push(T item) {
    std::unique_lock lock(mutex_);
    has_room_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    has_item_.notify_one();
    return true;
  }

  // Waits for an item. Empty when closed and drained; rethrows the producer's error once drained.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    has_item_.wait(lock, [&] { return closed_ || !items_.empty(); });
    if (items_.empty()) {
      if (error_) std::rethrow_exception(error_);
      return std::nullopt;
    }
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    has_room_.notify_one();
    return item;
  }

  // No more pushes succeed; items already queued can still be popped.
  void close() { close_with(nullptr); }

  // Closes with an error that every pop after the last item rethrows. The first error is kept.
  void fail(std::exception_ptr error) { close_with(std::move(error)); }

 private:
  void close_with(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    closed_ = true;
    has_item_.notify_all();
    has_room_.notify_all();
  }

  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable has_room_, has_item_;
  std::deque<T> items_;
  std::exception_ptr error_;
  bool closed_ = false;
};

}  // namespace headrace
