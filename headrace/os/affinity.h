// Which processors a thread runs on, counted as the system does. Any thread.
#pragma once

#include <vector>

namespace headrace::os {

// Processors that the calling thread may run on now, ascending; empty where the system does not tell.
std::vector<int> allowed_cores();

// Binds the calling thread; threads started from it afterwards inherit that, libtorch's compute pool too: call it
// before the first tensor operation. Does nothing without cores or where the system refuses.
void pin_this_thread(const std::vector<int>& cores);

// To one of the cores, counted round when there are fewer: pin_this_thread_to_one(device.cores().host, worker).
void pin_this_thread_to_one(const std::vector<int>& cores, int nth);

}  // namespace headrace::os
