// The memory of one AdamW pass as bare pointers: what the kernel's entry hands to the code of one instruction set.
#pragma once

#include <cstdint>

namespace headrace::kernel {

struct MasterPointers {
  float* fp32 = nullptr;     // the master, or
  uint16_t* bf16 = nullptr;  // its rounded copy beside it, or its upper half with
  int16_t* lower = nullptr;  // its lower half
};

struct Moments {
  float* m;
  float* v;
};

struct GradientPointers {  // one of the two
  const float* fp32;
  const uint16_t* bf16;
};

}  // namespace headrace::kernel
