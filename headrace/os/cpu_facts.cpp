#include "headrace/os/cpu_facts.h"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <thread>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"

namespace headrace::os {

int allowed_cpus() {
  // The mask must be as large as the kernel's, which is not known beforehand.
  for (int size = 1024; size <= 1 << 20; size *= 2) {
    cpu_set_t* set = CPU_ALLOC(size);
    const size_t bytes = CPU_ALLOC_SIZE(size);
    const bool is_known = set != nullptr && ::sched_getaffinity(0, bytes, set) == 0;
    const int count = is_known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::string cpu_model_name() {
  std::string text;
  try {
    text = read_file("/proc/cpuinfo");
  } catch (const Error&) {
    // no /proc: the architecture below
  }
  const size_t key = text.find("model name");
  const size_t colon = text.find(": ", key);
  if (key != std::string::npos && colon != std::string::npos) {
    return text.substr(colon + 2, text.find('\n', colon) - colon - 2);
  }
  struct utsname names {};
  return ::uname(&names) == 0 ? names.machine : "unknown";
}

}  // namespace headrace::os
