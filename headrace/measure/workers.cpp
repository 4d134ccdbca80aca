#include "headrace/measure/workers.h"

#include "headrace/os/affinity.h"

namespace headrace::measure {

Workers::Workers(int count) : start_(count + 1), end_(count + 1) {
  for (int worker = 0; worker < count; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
}

Workers::~Workers() {
  work_ = nullptr;
  start_.arrive_and_wait();
}

void Workers::run(const std::function<void(int)>& work) {
  work_ = &work;
  start_.arrive_and_wait();
  end_.arrive_and_wait();
}

void Workers::serve(int worker) {
  os::pin_this_thread_to_one(os::allowed_cores(), worker);
  for (;;) {
    start_.arrive_and_wait();
    if (work_ == nullptr) return;
    (*work_)(worker);
    end_.arrive_and_wait();
  }
}

}  // namespace headrace::measure
