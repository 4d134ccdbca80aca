#include "headrace/device/cores.h"

#include <sched.h>

namespace headrace::device {

std::vector<int> allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

Cores split(const std::vector<int>& cores) {
  if (cores.size() < 2) return {.compute = cores, .host = cores};
  const auto middle = cores.begin() + static_cast<std::ptrdiff_t>((cores.size() + 1) / 2);
  return {.compute = {cores.begin(), middle}, .host = {middle, cores.end()}};
}

std::string text_of(const std::vector<int>& cores) {
  std::string text;
  for (size_t first = 0; first < cores.size();) {
    size_t last = first;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cores[first]);
    if (last > first) text += "-" + std::to_string(cores[last]);
    first = last + 1;
  }
  return text;
}

void pin_this_thread(const std::vector<int>& cores) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int core : cores) {
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &mask);
  }
  if (CPU_COUNT(&mask) > 0) ::sched_setaffinity(0, sizeof mask, &mask);
}

void pin_this_thread_to_one(const std::vector<int>& cores, int nth) {
  if (!cores.empty()) pin_this_thread({cores[static_cast<size_t>(nth) % cores.size()]});
}

}  // namespace headrace::device
