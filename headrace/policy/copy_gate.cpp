#include "headrace/policy/copy_gate.h"

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

void CopyGate::pass(size_t block) {
  if (num_closed_ == 0) return;
  std::unique_lock lock(mutex_);
  opened_.wait(lock, [&] { return !is_closed_[block]; });
}

void CopyGate::pass_all() {
  if (num_closed_ == 0) return;
  std::unique_lock lock(mutex_);
  opened_.wait(lock, [&] { return num_closed_ == 0; });
}

}  // namespace headrace::policy
