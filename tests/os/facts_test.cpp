#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <vector>

#include "headrace/os/cpu_facts.h"
#include "headrace/os/memory_facts.h"

namespace headrace::os {
namespace {

TEST(MemoryFacts, SeeAnAllocation) {
  const MemoryFacts before = memory_facts();
  EXPECT_GT(before.resident_bytes, 0);
  EXPECT_GT(before.available_bytes, 0);
  EXPECT_GE(before.total_bytes, before.available_bytes);
  constexpr int64_t kBytes = 64 << 20;
  {
    const std::vector<char> block(kBytes, 'x');
    EXPECT_GE(memory_facts().resident_bytes, before.resident_bytes + kBytes / 2) << block[5];
  }
  EXPECT_GE(memory_facts().peak_resident_bytes, before.resident_bytes + kBytes / 2) << "the peak is remembered";
}

TEST(CpuFacts, CountFollowsTheAffinityMask) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(allowed_cpus(), CPU_COUNT(&all));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(allowed_cpus(), 1);
  ::sched_setaffinity(0, sizeof all, &all);
}

TEST(CpuFacts, ModelNameIsOneLine) {
  EXPECT_FALSE(cpu_model_name().empty());
  EXPECT_EQ(cpu_model_name().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace headrace::os
