// A device as the lanes use it: memory of its two tiers, a link in each direction, points in its compute stream. Three
// makers: cpu.h (the reference), emulated.h (an accelerator imitated on the CPU), cuda.h. No torch here.
// Any thread, except that copies of one direction go one at a time. The trainer thread builds and destroys it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/device/cores.h"
#include "headrace/device/event.h"
#include "headrace/device/slab.h"

namespace headrace::device {

enum class Kind { kCpu, kEmulated, kCuda };

// "cpu", "emulated" or "cuda". Throws ConfigError listing the choices for any other word.
Kind parse(std::string_view word);

std::string_view name_of(Kind kind);

enum class Direction { kToDevice, kToHost };  // of a link; the lanes h2d and d2h

std::string_view name_of(Direction direction);  // "h2d", "d2h"

class Device {
 public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual Kind kind() const = 0;

  // One line for logs and reports, which says "emulated" where that is what it is:
  // "cpu: everything resident, fp32", "cuda: NVIDIA H200, 139 GiB of 140 GiB free, sm_90". Throws DeviceError.
  virtual std::string describe() const = 0;

  // Memory exact to a page, contents not stated; may outlive the device. Meant for few, large requests before the first
  // step. bytes >= 0. Throws CapacityError naming tier, need, have and knob; DeviceError when the device fails.
  virtual Slab allocate(Tier tier, int64_t bytes) = 0;

  // Blocks the calling lane until the bytes have arrived. `to` and `from` do not overlap; one is memory of this device,
  // the other of the host, as the direction says. Not ordered with the compute stream: wait(event) first for what
  // compute still writes or reads. Throws InternalError when the direction is in use already; DeviceError.
  virtual void copy(Direction direction, std::byte* to, const std::byte* from, int64_t bytes) = 0;

  // The point in the compute stream after everything queued so far. Where compute runs on the thread that asks for it
  // (cpu, emulated) that point has been passed already. Throws DeviceError.
  virtual Event record() { return {}; }

  // Blocks the calling thread until compute has passed the event. Throws DeviceError, also for what compute failed at.
  virtual void wait(const Event&) {}

  // Returns when compute has passed everything queued so far. Throws DeviceError, also for what compute failed at.
  virtual void finish_compute() {}

  // Whether device memory is the host's own, so that its addresses may be used there. Else only copies reach it.
  virtual bool shares_host_memory() const { return true; }
  // Of the GPU, as libtorch counts them; negative where libtorch computes on the CPU.
  virtual int gpu_index() const { return -1; }
  // Device memory from and to any host memory, beside the lanes' copies: for saving, restoring and what else is no task.
  // Ordered after what compute has queued so far; returns when the bytes have arrived. Threads take turns. Throws
  // DeviceError.
  virtual void read(std::byte* to, const std::byte* from, int64_t bytes);
  virtual void write(std::byte* to, const std::byte* from, int64_t bytes);

  // Where the compute lane, and where host update workers and links should run (cores.h pins them).
  virtual const Cores& cores() const = 0;

  // What the user should know and did not ask for, each sentence once: page-locked memory that the system refused.
  virtual std::vector<std::string> take_warnings() { return {}; }
};

}  // namespace headrace::device
