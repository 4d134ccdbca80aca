// What a trace of ZenFlow shows: flushes, columns that change sides, and how old what a merge brings is.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "headrace/device/emulated.h"
#include "headrace/policy/zenflow/zenflow.h"
#include "tests/policy/relay.h"

namespace headrace::policy {
namespace {

using graph::TaskKind;

std::unique_ptr<ZenFlow> traced(const model::Model& model, int64_t interval) {
  at::set_num_threads(1);
  ZenFlowSettings settings{.schedule = {.update_interval = interval, .warmup_steps = 2, .select_interval = 4}};
  settings.recorded_steps = 12;
  auto policy =
      std::make_unique<ZenFlow>(model, device::make_emulated_device({}), support::random_weights(model, 1), settings);
  for (int64_t i = 0; i < 12; ++i) Relay{}.step(*policy, i);
  return policy;
}

TEST(ZenFlowTrace, AMergeSaysHowStaleItsOldestGradientIs) {
  const model::Model model = support::tiny_model();
  for (const int64_t interval : {1, 2, 3}) {
    SCOPED_TRACE("S = " + std::to_string(interval));
    const auto policy = traced(model, interval);
    const graph::Recording recorded = policy->recording();
    int64_t stalest = 0;
    for (const graph::Task& task : recorded.graph.tasks) {
      if (task.kind == TaskKind::kMerge) {
        EXPECT_GE(task.staleness, 0) << name_of(task);
        stalest = std::max(stalest, task.staleness);
      } else {
        EXPECT_EQ(task.staleness, graph::kNoStaleness) << name_of(task);
      }
    }
    EXPECT_EQ(stalest, policy->staleness().largest());
    EXPECT_EQ(stalest, 2 * interval - 1);
  }
}

TEST(ZenFlowTrace, IsWrittenWithFlushesAndMigrations) {
  const model::Model model = support::tiny_model();
  const auto policy = traced(model, 2);
  std::ostringstream out;
  ASSERT_TRUE(policy->write_trace(out));
  std::map<std::string, int> count;
  int num_stale = 0;
  const Json trace = parse_json(out.str(), "test", "trace");
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++count[event.at("cat")];
    num_stale += event.at("args").contains("staleness") ? 1 : 0;
  }
  for (const TaskKind kind : {TaskKind::kHostUpdate, TaskKind::kMerge, TaskKind::kRelease, TaskKind::kAdopt}) {
    EXPECT_GT(count[std::string(name_of(kind))], 0) << name_of(kind);
  }
  EXPECT_EQ(num_stale, count["merge"]);
}

}  // namespace
}  // namespace headrace::policy
