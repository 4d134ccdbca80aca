// Whole runs, one after another in one process: each gives back what it took. HEADRACE_RESTARTS says how many.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>

#include "headrace/os/memory_facts.h"
#include "tests/train/tiny_run.h"

namespace headrace::train {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWarmUp = 4;  // runs in which pools, caches and libraries come up

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeepsFreedMemory = true;  // the sanitizers do, and look for leaks themselves
#else
constexpr bool kKeepsFreedMemory = false;
#endif
constexpr int64_t kMostGrowth = int64_t{1} << 20;  // [bytes] of all runs together: a run's state is about as large

int64_t num_restarts() {
  const char* text = std::getenv("HEADRACE_RESTARTS");
  return kWarmUp + (text == nullptr ? 20 : std::strtoll(text, nullptr, 10));
}

int64_t num_entries(const char* folder) { return std::distance(fs::directory_iterator(folder), {}); }

struct Taken {
  int64_t threads = num_entries("/proc/self/task"), handles = num_entries("/proc/self/fd"), bytes = 0;
  Taken() {
    ::malloc_trim(0);
    bytes = os::memory_facts().resident_bytes;
  }
};

class RestartTest : public TinyRun, public testing::WithParamInterface<const char*> {};

TEST_P(RestartTest, LeavesNothingBehind) {
  config::TrainConfig settings = config("run");
  settings.policy = GetParam();
  if (settings.policy != "resident") settings.device = "emulated";
  settings.threads = 1;
  settings.host_workers = 2;
  settings.held_out = 0;
  settings.batch = 1;
  settings.update_interval = "1";
  settings.steps = 2 * num_restarts();
  settings.schedule = "constant";
  settings.resume = "auto";
  std::optional<Taken> before;
  for (int64_t i = 0; i < num_restarts(); ++i) {
    if (i == kWarmUp) before.emplace();
    int64_t asked_in_this_run = 0;
    // Two steps: after each it asks whether to save.
    const TrainResult result =
        train(settings, {progress_, [&] { return asked_in_this_run >= 2; }, [&] { return ++asked_in_this_run < 0; }});
    ASSERT_EQ(result.steps, 2 * (i + 1));
  }
  const Taken after;
  EXPECT_EQ(after.threads, before->threads);
  EXPECT_EQ(after.handles, before->handles);
  EXPECT_TRUE(kKeepsFreedMemory || after.bytes - before->bytes <= kMostGrowth) << after.bytes - before->bytes;
  RecordProperty("growth_bytes", std::to_string(after.bytes - before->bytes));
}

INSTANTIATE_TEST_SUITE_P(Policies, RestartTest, testing::Values("resident", "offload", "zenflow"),
                         [](const auto& policy) { return std::string(policy.param); });

}  // namespace
}  // namespace headrace::train
