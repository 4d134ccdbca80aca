// Which device computes, named by the user and checked before anything is allocated. No torch here. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace headrace::device {

enum class Kind { kCpu, kCuda };

// "cpu" or "cuda". Throws ConfigError listing the choices for any other word, and saying what is missing for
// "emulated", the accelerator imitated on the CPU, which offloading needs and brings.
Kind parse(std::string_view word);

std::string_view name_of(Kind kind);

// One line for the log: "cpu: everything resident, fp32", "cuda: NVIDIA H200, 139 GiB of 140 GiB free, sm_90".
// Throws DeviceError when the device cannot be used: this build has no CUDA, or the machine has no usable GPU.
std::string describe(Kind kind);

}  // namespace headrace::device
