// A property that every accepted input must have: when it has not, the fuzzer records a crash.
#pragma once

#include <cstdio>
#include <cstdlib>

#define HEADRACE_FUZZ_EXPECT(condition)                                            \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)
