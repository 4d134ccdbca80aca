// Which processors a device's threads run on. Processors are counted as the system does. Any thread.
#pragma once

#include <string>
#include <vector>

namespace headrace::device {

struct Cores {
  std::vector<int> compute;  // the compute lane and the threads it starts
  std::vector<int> host;     // host update workers and links
};

// Processors that the calling thread may run on now, ascending; empty where the system does not tell.
std::vector<int> allowed_cores();

// The first half computes, the second half is the host's; with one core both share it. Of an odd number the middle one
// computes. Pure.
Cores split(const std::vector<int>& cores);

// "0-3,8": for reports. Pure; cores ascend.
std::string text_of(const std::vector<int>& cores);

// Binds the calling thread; threads started from it afterwards inherit that, libtorch's compute pool too: call it
// before the first tensor operation. Does nothing without cores or where the system refuses.
void pin_this_thread(const std::vector<int>& cores);

// To one of the cores, counted round when there are fewer: pin_this_thread_to_one(device.cores().host, worker).
void pin_this_thread_to_one(const std::vector<int>& cores, int nth);

}  // namespace headrace::device
