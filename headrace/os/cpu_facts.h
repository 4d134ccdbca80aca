// What the system says of processors. Any thread.
#pragma once

#include <string>

namespace headrace::os {

// Processors this process may run on (its affinity mask); at least 1.
int allowed_cpus();

// "AMD EPYC 7B13", as /proc/cpuinfo names it; the machine architecture where it does not.
std::string cpu_model_name();

}  // namespace headrace::os
