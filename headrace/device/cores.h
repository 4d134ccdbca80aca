// Which processors a device's threads run on. Processors are counted as the system does. Any thread.
#pragma once

#include <string>
#include <vector>

namespace headrace::device {

struct Cores {
  std::vector<int> compute;  // the compute lane and the threads it starts
  std::vector<int> host;     // host update workers and links
};

// The first half computes, the second half is the host's; with one core both share it. Of an odd number the middle one
// computes. Pure.
Cores split(const std::vector<int>& cores);

// "0-3,8": for reports. Pure; cores ascend.
std::string text_of(const std::vector<int>& cores);

}  // namespace headrace::device
