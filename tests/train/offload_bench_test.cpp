#include "headrace/train/offload_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/device/cores.h"
#include "headrace/os/affinity.h"
#include "headrace/train/offload_bench_report.h"
#include "headrace/train/offload_bench_zenflow.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_folder.h"

namespace headrace::train {
namespace {

using ::testing::HasSubstr;

class OffloadBenchTest : public ::testing::Test {
 protected:
  OffloadBenchTest() {
    support::write_tiny_folder(folder_ / "model");
    settings_.model = folder_ / "model";
    settings_.host_ratios = {2};
    settings_.tokens = 64;
    settings_.steps = 2;
  }

  std::string refusal() const {
    try {
      validate(settings_);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  static void expect_whole_stall_table(const OffloadBenchRow& row) {
    int64_t sum = 0;
    for (const graph::StallRow& stall : row.stall.rows) sum += stall.ns;
    EXPECT_EQ(sum, row.stall.idle_ns);
  }

  static void expect_near(const LaneBytes& bytes, const LaneBytes& expected, double tolerance) {
    EXPECT_NEAR(bytes.h2d / expected.h2d, 1, tolerance);
    EXPECT_NEAR(bytes.d2h / expected.d2h, 1, tolerance);
    EXPECT_NEAR(bytes.host_update / expected.host_update, 1, tolerance);
  }

  static void expect_windows(const OffloadBenchRow& row, size_t recorded_steps) {
    const int64_t interval = row.zenflow->update_interval;
    const BenchSteps steps = zenflow_steps(interval, 2);
    EXPECT_EQ(static_cast<int64_t>(row.step_times_s.size()), steps.timed);
    EXPECT_EQ(static_cast<int64_t>(recorded_steps), steps.all());
    EXPECT_LE(row.zenflow->staleness_max, 2 * interval - 1);
    EXPECT_GT(row.zenflow->staleness_mean, 0);
    EXPECT_GT(row.zenflow->host_floor, 0);
    EXPECT_LE(row.zenflow->host_floor, 1);
    EXPECT_EQ(row.closed_form_stall_s, 0);
    EXPECT_NEAR(static_cast<double>(row.peak.host) / static_cast<double>(row.plan.host), 1, 0.05);
    EXPECT_NEAR(static_cast<double>(row.peak.device) / static_cast<double>(row.plan.device), 1, 0.05);
  }

  TempFolder folder_;
  OffloadBenchSettings settings_;
};

TEST_F(OffloadBenchTest, EveryCellHasARowWithExactBytesAndAWholeStallTable) {
  int64_t cells = 0;
  const std::vector<int> cores = os::allowed_cores();
  const OffloadBenchResult result =
      bench_offload(settings_, {.on_cell = [&](const OffloadBenchRow& row, const graph::Recording& recording) {
                      ++cells;
                      EXPECT_EQ(recording.timeline.data_ready_ns.size(), row.step_times_s.size() + 1);
                    }});
  EXPECT_EQ(os::allowed_cores(), cores) << "the thread stayed pinned";
  EXPECT_THAT(result.device, HasSubstr("emulated"));
  std::vector<std::string> names;
  for (const OffloadBenchRow& row : result.rows) {
    names.push_back(row.policy + (row.clip ? " clip" : ""));
    SCOPED_TRACE(names.back());
    EXPECT_EQ(row.step_times_s.size(), 2U);
    EXPECT_GT(row.step_time_s, 0);
    EXPECT_GT(row.practicality(), 0);
    EXPECT_GT(row.predicted.step_time_s, 0);
    EXPECT_GT(row.ideal.step_time_s, 0);
    EXPECT_DOUBLE_EQ(row.bytes.h2d, row.bytes_formula.h2d);
    EXPECT_DOUBLE_EQ(row.bytes.d2h, row.bytes_formula.d2h);
    EXPECT_DOUBLE_EQ(row.bytes.host_update, row.bytes_formula.host_update);
    EXPECT_EQ(row.device_blocks > 0, row.policy == "exact+share");
    EXPECT_GT(row.peak.device, 0);
    EXPECT_NEAR(static_cast<double>(row.peak.host), static_cast<double>(row.plan.host), 4096);  // gaps between blocks
    expect_whole_stall_table(row);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"none", "exact", "none clip", "exact clip", "exact+share clip"}));
  EXPECT_EQ(cells, 5);
}

TEST_F(OffloadBenchTest, ZenFlowHasRowsOfWholeWindowsAndAControl) {
  settings_.policies = {"zenflow", "zenflow-free", "zenflow-running"};
  settings_.device_share = "0.3";
  settings_.tokens = 16;                   // few: the plan only estimates activations
  std::map<std::string, size_t> recorded;  // steps by policy
  const OffloadBenchResult result =
      bench_offload(settings_, {.on_cell = [&](const OffloadBenchRow& row, const graph::Recording& recording) {
                      recorded[row.policy] = recording.timeline.data_ready_ns.size();
                    }});
  std::vector<std::string> names;
  for (const OffloadBenchRow& row : result.rows) {
    names.push_back(row.policy);
    SCOPED_TRACE(names.back());
    EXPECT_TRUE(row.clip);
    expect_whole_stall_table(row);
    expect_near(row.bytes - row.exchanged, row.bytes_formula, 1e-9);
    EXPECT_GT(row.predicted.step_time_s, 0);
    EXPECT_GT(row.ideal.step_time_s, 0);
    EXPECT_GT(row.compute_slowdown(), 0);
    EXPECT_EQ(row.exchanged.h2d, row.exchanged.d2h);
    EXPECT_EQ(row.zenflow.has_value(), row.policy != "zenflow-free");
    if (row.zenflow) expect_windows(row, recorded[row.policy]);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"zenflow", "zenflow-free", "zenflow+share", "zenflow-running",
                                             "zenflow-running+share"}));
  EXPECT_GE(result.rows[2].device_share, 0.3);
  EXPECT_LT(result.rows[2].zenflow->deferred, result.rows[0].zenflow->deferred);
}

TEST(OffloadBenchZenflow, WindowsAreTheShortestThatTheHostCanFollow) {
  struct Case {
    double ratio;
    int64_t slots, running;  // S; 0: the longest, and a row with a device share
  };
  for (const Case& at : {Case{0.5, 1, 1}, {1, 1, 2}, {2, 3, 7}, {4, 7, 0}, {8, 0, 0}}) {
    ResidentBaseline resident;
    resident.host_ratio = at.ratio;
    resident.forward_s = 1;
    resident.backward_s = 2;
    for (const auto& [policy, interval] : {std::pair("zenflow", at.slots), {"zenflow-running", at.running}}) {
      SCOPED_TRACE(std::string(policy) + " " + std::to_string(at.ratio));
      const std::vector<ZenflowCell> cells = zenflow_cells(policy, true, {}, resident);
      EXPECT_EQ(cells.front().update_interval, interval > 0 ? interval : 8);
      EXPECT_EQ(cells.front().device_share, 0);
      ASSERT_EQ(cells.size(), interval > 0 ? 1U : 2U);
      if (interval > 0) continue;
      EXPECT_EQ(cells.back().update_interval, 8);
      EXPECT_GT(cells.back().device_share, 0);
      EXPECT_LT(cells.back().device_share, 1);
    }
  }
}

TEST(OffloadBenchZenflow, TimedStepsAreWholeWindowsAfterAllBuffersWereUsed) {
  for (const int64_t interval : {1, 3, 7, 8, 16}) {
    const BenchSteps steps = zenflow_steps(interval, 5);
    EXPECT_EQ(steps.warm_up, 1 + 2 * interval);
    EXPECT_EQ(steps.timed % interval, 0);
    EXPECT_GE(steps.timed, std::max<int64_t>(16, 2 * interval + 2));
  }
  EXPECT_EQ(zenflow_steps(3, 40).timed, 42);
}

TEST_F(OffloadBenchTest, AFixedShareTakesWholeBlocksAndNoneIsNoRow) {
  settings_.policies = {"exact"};
  settings_.clip = {"on"};
  settings_.steps = 1;
  settings_.device_share = "0.3";
  const OffloadBenchResult some = bench_offload(settings_, {});
  ASSERT_EQ(some.rows.size(), 2U);
  EXPECT_GE(some.rows[1].device_share, 0.3);
  EXPECT_LT(some.rows[1].bytes.h2d, some.rows[0].bytes.h2d);
  EXPECT_LT(some.rows[1].plan.host, some.rows[0].plan.host);
  settings_.device_share = "0";
  EXPECT_EQ(bench_offload(settings_, {}).rows.size(), 1U);
}

TEST_F(OffloadBenchTest, JsonAndTableSayHowZenFlowWorked) {
  settings_.policies = {"zenflow"};
  settings_.clip = {"off"};
  settings_.host_ratios = {0.5};
  const OffloadBenchResult result = bench_offload(settings_, {});
  const OrderedJson json = to_json(result), row = json.at("rows").at(0);
  for (const char* key : {"window_sum", "topk", "deferred_parameters", "host_floor", "staleness", "selection_churn"}) {
    EXPECT_TRUE(row.contains(key)) << key;
  }
  EXPECT_EQ(row.at("update_interval"), 1);
  EXPECT_EQ(row.at("clip"), false);
  EXPECT_EQ(json.at("setting").at("model_bytes"), 4 * result.parameters);
  EXPECT_GT(row.at("work_s").at("merge"), 0);
  EXPECT_THAT(text_of(result), HasSubstr("floor"));
}

TEST_F(OffloadBenchTest, JsonAndTableSayWhatWasMeasuredAndThatItIsEmulated) {
  settings_.policies = {"exact"};
  settings_.clip = {"off"};
  settings_.steps = 1;
  const OffloadBenchResult result = bench_offload(settings_, {});
  const OrderedJson json = to_json(result);
  ASSERT_EQ(json.at("rows").size(), 1U);
  const OrderedJson& row = json.at("rows").front();
  for (const char* key :
       {"policy", "host_ratio", "clip", "step_time_s", "stall_share", "practicality", "bytes", "bytes_formula", "peak",
        "plan", "predicted_step_time_s", "ideal_stall_share", "stall_by_reason", "within"}) {
    EXPECT_TRUE(row.contains(key)) << key;
  }
  double shares = 0;
  for (const OrderedJson& reason : row.at("stall_by_reason")) shares += reason.at("share").get<double>();
  EXPECT_NEAR(shares, row.at("stall_share").get<double>(), 1e-9);
  EXPECT_EQ(row.at("device"), "emulated");
  EXPECT_THAT(json.at("setting").at("why").get<std::string>(), HasSubstr("Emulated"));
  EXPECT_THAT(text_of(result), HasSubstr("emulated"));
}

TEST_F(OffloadBenchTest, BarsAreDrawnWhereTheyWereSet) {
  OffloadBenchRow row;
  row.step_time_s = 1;
  row.stall = {.window = {0, 1000}, .idle_ns = 40, .rows = {}};
  row.ideal.stall_share = 0.02;
  row.predicted.step_time_s = 0.91;
  row.peak = row.plan = {.device = 100, .host = 100};
  row.bytes = row.bytes_formula = {.h2d = 100, .d2h = 100, .host_update = 700};
  const BenchBars good = bars_of(row);
  EXPECT_TRUE(good.stall_near_ideal && good.stall_in_regime == true && good.prediction && good.peaks && good.bytes);
  row.stall.idle_ns = 60;
  row.predicted.step_time_s = 0.89;
  row.peak.host = 106;
  row.bytes.d2h = 102;
  const BenchBars bad = bars_of(row);
  EXPECT_FALSE(bad.stall_near_ideal || bad.stall_in_regime == true || bad.prediction || bad.peaks || bad.bytes);
  row.bytes.d2h = row.bytes.h2d = 101.5;
  row.stall.idle_ns = 30;
  row.zenflow.emplace();
  EXPECT_TRUE(bars_of(row).bytes && bars_of(row).stall_in_regime == false);
  row.closed_form_stall_s = 0.1;
  EXPECT_FALSE(bars_of(row).stall_in_regime.has_value());
}

TEST_F(OffloadBenchTest, WrongSettingsAreRefusedByName) {
  const OffloadBenchSettings good = settings_;
  const auto expect_refused = [&](const std::string& word) {
    EXPECT_THAT(refusal(), HasSubstr(word));
    settings_ = good;
  };
  EXPECT_EQ(refusal(), "");
  settings_.policies = {"exact", "magic"};
  expect_refused("\"magic\"");
  settings_.policies = {};
  expect_refused("--policies is empty");
  settings_.clip = {"yes"};
  expect_refused("--clip");
  settings_.host_ratios = {};
  expect_refused("--host-ratios is empty");
  settings_.host_ratios = {1, 0};
  expect_refused("--host-ratios");
  settings_.tokens = 1;
  expect_refused("--tokens");
  settings_.steps = 0;
  expect_refused("--steps");
  settings_.topk = 0;
  expect_refused("--topk");
  settings_.topk = 1.5;
  expect_refused("--topk");
  settings_.max_interval = 0;
  expect_refused("--max-interval");
  settings_.policies = {"exact", "zenflow-free"};
  expect_refused("zenflow-free");
  settings_.link_share = 0;
  expect_refused("--link-share");
  for (const char* share : {"all", "1.5", "-1", "0.5x", ""}) {
    settings_.device_share = share;
    expect_refused("--device-share");
  }
}

}  // namespace
}  // namespace headrace::train
