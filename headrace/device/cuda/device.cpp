#include "headrace/device/device.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/units.h"
#include "headrace/device/cuda.h"
#include "headrace/device/cuda/check.h"
#include "headrace/os/affinity.h"

namespace headrace::device::cuda {
namespace {

// Device bytes in use by slabs. Slabs share it, because they may outlive the device.
class Ledger {
 public:
  explicit Ledger(int64_t limit) : limit_(limit) {}

  void take(int64_t bytes) {
    std::lock_guard lock(mutex_);
    const int64_t left = limit_ - in_use_;
    if (bytes > left) refuse_bytes(Tier::kDevice, bytes, left, "the budget is " + format_bytes(limit_));
    in_use_ += bytes;
  }
  void give(int64_t bytes) {
    std::lock_guard lock(mutex_);
    in_use_ -= bytes;
  }

 private:
  const int64_t limit_;
  std::mutex mutex_;
  int64_t in_use_ = 0;
};

// A point in a stream for which a thread waits asleep.
std::shared_ptr<CUevent_st> make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventBlockingSync | cudaEventDisableTiming), "cannot make an event");
  return {event, [](cudaEvent_t made) { cudaEventDestroy(made); }};
}

std::shared_ptr<CUstream_st> make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cannot make a stream");
  return {stream, [](cudaStream_t made) { cudaStreamDestroy(made); }};
}

struct Link {
  const std::shared_ptr<CUstream_st> stream = make_stream();
  const std::shared_ptr<CUevent_st> arrived = make_event();
  std::atomic<bool> is_busy = false;
};

// Frees the direction also when a copy throws.
class Claim {
 public:
  Claim(Link& link, Direction direction) : link_(link) {
    if (!link_.is_busy.exchange(true)) return;
    throw InternalError("device.copy", "two copies at a time on " + std::string(name_of(direction)) + ".");
  }
  ~Claim() { link_.is_busy = false; }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

 private:
  Link& link_;
};

class CudaDevice : public Device {
 public:
  explicit CudaDevice(const Settings& settings)
      : index_(settings.index),
        compute_stream_(settings.compute_stream),
        ledger_(std::make_shared<Ledger>(settings.budget_bytes > 0 ? settings.budget_bytes
                                                                   : facts(settings.index).total_bytes)) {
    become_current();
    to_device_ = std::make_unique<Link>();
    to_host_ = std::make_unique<Link>();
    beside_ = std::make_unique<Link>();
  }

  Kind kind() const override { return Kind::kCuda; }
  std::string describe() const override;
  Slab allocate(Tier tier, int64_t bytes) override;
  void copy(Direction direction, std::byte* to, const std::byte* from, int64_t bytes) override;
  Event record() override;
  void wait(const Event& event) override;
  void finish_compute() override;
  bool shares_host_memory() const override { return false; }
  int gpu_index() const override { return index_; }
  void read(std::byte* to, const std::byte* from, int64_t bytes) override {
    copy_beside(to, from, bytes, cudaMemcpyDeviceToHost);
  }
  void write(std::byte* to, const std::byte* from, int64_t bytes) override {
    copy_beside(to, from, bytes, cudaMemcpyHostToDevice);
  }
  const Cores& cores() const override { return cores_; }
  std::vector<std::string> take_warnings() override;

 private:
  // The runtime keeps the current GPU for each thread, and any lane may call.
  void become_current() const { check(cudaSetDevice(index_), "cannot open the GPU"); }
  Slab allocate_on_device(int64_t bytes);
  Slab allocate_page_locked(int64_t bytes);
  void copy_beside(std::byte* to, const std::byte* from, int64_t bytes, cudaMemcpyKind kind);
  void warn_once(const std::string& sentence);

  const int index_;
  CUstream_st* const compute_stream_;
  const std::shared_ptr<Ledger> ledger_;
  const Cores cores_{.compute = os::allowed_cores(), .host = os::allowed_cores()};
  std::unique_ptr<Link> to_device_, to_host_;
  std::mutex beside_mutex_;
  std::unique_ptr<Link> beside_;  // of read() and write()
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  bool has_warned_ = false;
};

std::string CudaDevice::describe() const {
  const Facts now = facts(index_);
  return "cuda: " + now.name + ", " + format_bytes(now.free_bytes) + " of " + format_bytes(now.total_bytes) +
         " free, sm_" + std::to_string(now.major) + std::to_string(now.minor);
}

Slab CudaDevice::allocate(Tier tier, int64_t bytes) {
  const int64_t whole = whole_pages(bytes);
  if (whole == 0) return {};
  become_current();
  return tier == Tier::kDevice ? allocate_on_device(whole) : allocate_page_locked(whole);
}

Slab CudaDevice::allocate_on_device(int64_t bytes) {
  ledger_->take(bytes);
  void* data = nullptr;
  const cudaError_t result = cudaMalloc(&data, static_cast<size_t>(bytes));
  if (result == cudaSuccess) {
    return {static_cast<std::byte*>(data), bytes, false, [ledger = ledger_, bytes](std::byte* begin) {
              cudaFree(begin);
              ledger->give(bytes);
            }};
  }
  ledger_->give(bytes);
  if (result != cudaErrorMemoryAllocation) check(result, "cannot allocate " + format_bytes(bytes) + " on the GPU");
  cudaGetLastError();
  refuse_bytes(Tier::kDevice, bytes, facts(index_).free_bytes, cudaGetErrorString(result));
}

Slab CudaDevice::allocate_page_locked(int64_t bytes) {
  void* data = nullptr;
  const cudaError_t result = cudaHostAlloc(&data, static_cast<size_t>(bytes), cudaHostAllocPortable);
  if (result == cudaSuccess) {
    return {static_cast<std::byte*>(data), bytes, true, [](std::byte* begin) { cudaFreeHost(begin); }};
  }
  cudaGetLastError();
  warn_once("the system did not page-lock " + format_bytes(bytes) + " of host memory (" + cudaGetErrorString(result) +
            "); it is pageable, and copies from and to it are slower.");
  return map_pages(Tier::kHost, bytes);
}

void CudaDevice::copy(Direction direction, std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes <= 0) return;
  const bool is_down = direction == Direction::kToHost;
  Link& link = is_down ? *to_host_ : *to_device_;
  const Claim claim(link, direction);
  become_current();
  const std::string what = "cannot copy " + format_bytes(bytes) + " on " + std::string(name_of(direction));
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), is_down ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice,
                        link.stream.get()),
        what);
  check(cudaEventRecord(link.arrived.get(), link.stream.get()), what);
  check(cudaEventSynchronize(link.arrived.get()), what);
}

Event CudaDevice::record() {
  become_current();
  const std::shared_ptr<CUevent_st> event = make_event();
  check(cudaEventRecord(event.get(), compute_stream_), "cannot mark the compute stream");
  return Event(event);
}

void CudaDevice::wait(const Event& event) {
  if (event.mark() == nullptr) return;
  become_current();
  check(cudaEventSynchronize(static_cast<cudaEvent_t>(event.mark())), "compute failed");
}

// Without sleeping: compute is to go on at once.
void CudaDevice::finish_compute() {
  become_current();
  check(cudaStreamSynchronize(compute_stream_), "compute failed");
}

void CudaDevice::copy_beside(std::byte* to, const std::byte* from, int64_t bytes, cudaMemcpyKind kind) {
  if (bytes <= 0) return;
  const std::lock_guard lock(beside_mutex_);
  become_current();
  const std::string what = "cannot copy " + format_bytes(bytes) + " beside the lanes";
  check(cudaEventRecord(beside_->arrived.get(), compute_stream_), what);
  check(cudaStreamWaitEvent(beside_->stream.get(), beside_->arrived.get(), 0), what);
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, beside_->stream.get()), what);
  check(cudaEventRecord(beside_->arrived.get(), beside_->stream.get()), what);
  check(cudaEventSynchronize(beside_->arrived.get()), what);
}

void CudaDevice::warn_once(const std::string& sentence) {
  std::lock_guard lock(mutex_);
  if (!std::exchange(has_warned_, true)) warnings_.push_back(sentence);
}

std::vector<std::string> CudaDevice::take_warnings() {
  std::lock_guard lock(mutex_);
  return std::exchange(warnings_, {});
}

}  // namespace

std::unique_ptr<Device> make_device(const Settings& settings) {
  if (settings.budget_bytes < 0) {
    throw ConfigError("device.cuda", "the budget is " + std::to_string(settings.budget_bytes) + " bytes.");
  }
  facts(settings.index);  // says which GPUs there are, and opens this one
  return std::make_unique<CudaDevice>(settings);
}

}  // namespace headrace::device::cuda
