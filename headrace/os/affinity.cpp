#include "headrace/os/affinity.h"

#include <sched.h>

namespace headrace::os {

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

}  // namespace headrace::os
