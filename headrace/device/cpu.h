// The CPU as the device: everything resident, both tiers the same memory. The reference for all others. Any thread.
#pragma once

#include <memory>

#include "headrace/device/device.h"

namespace headrace::device {

// Copies at the speed of memory; every core computes and every core is the host's.
std::unique_ptr<Device> make_cpu_device();

}  // namespace headrace::device
