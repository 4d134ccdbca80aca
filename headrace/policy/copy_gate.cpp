#include "headrace/policy/copy_gate.h"

#include <chrono>

namespace headrace::policy {

std::shared_ptr<CopyGate> CopyGate::close(const std::shared_ptr<CopyGate>& gate) {
  gate->close_all();
  return {gate.get(), [gate](CopyGate* closed) { closed->open_all(); }};
}

void CopyGate::close_all() {
  std::unique_lock lock(mutex_);
  opened_.wait(lock, [&] { return num_closed_ == 0; });
  is_closed_.assign(is_closed_.size(), true);
  num_closed_ = is_closed_.size();
  waited_s_ = 0;
}

void CopyGate::open(size_t block) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_closed_[block]) return;
    is_closed_[block] = false;
    --num_closed_;
  }
  opened_.notify_all();
}

void CopyGate::open_all() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_.assign(is_closed_.size(), false);
    num_closed_ = 0;
  }
  opened_.notify_all();
}

template <class IsOpen>
void CopyGate::wait(const IsOpen& is_open) {
  if (num_closed_ == 0) return;
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  opened_.wait(lock, is_open);
  waited_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void CopyGate::pass(size_t block) {
  wait([&] { return !is_closed_[block]; });
}

void CopyGate::pass_all() {
  wait([&] { return num_closed_ == 0; });
}

double CopyGate::waited_s() const {
  const std::lock_guard lock(mutex_);
  return waited_s_;
}

}  // namespace headrace::policy
