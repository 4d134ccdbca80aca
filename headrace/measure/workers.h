// Threads that do one thing together and wait for each other: what kernels are timed on. No OpenMP.
#pragma once

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

namespace headrace::measure {

// Owns `count` threads, each pinned to a processor of its own as long as there are enough. The destructor joins them.
class Workers {
 public:
  explicit Workers(int count);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Calls work(worker) once on each thread and returns when all have; `work` must not throw. One caller at a time.
  void run(const std::function<void(int worker)>& work);
  int count() const { return static_cast<int>(threads_.size()); }

 private:
  void serve(int worker);

  std::barrier<> start_, end_;
  const std::function<void(int)>* work_ = nullptr;  // null at a start: leave
  std::vector<std::jthread> threads_;
};

}  // namespace headrace::measure
