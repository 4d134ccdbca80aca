// What the system says of memory. Read afresh at each call; any thread; costs some microseconds.
#pragma once

#include <cstdint>

namespace headrace::os {

struct MemoryFacts {
  int64_t resident_bytes = 0;       // of this process, now
  int64_t peak_resident_bytes = 0;  // the most this process ever had
  int64_t available_bytes = 0;      // what may still be allocated without swapping, control-group limits included
  int64_t total_bytes = 0;          // of the machine
};

// Facts that the system does not give (no /proc) are 0.
MemoryFacts memory_facts();

}  // namespace headrace::os
