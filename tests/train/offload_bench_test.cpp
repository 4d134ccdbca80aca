#include "headrace/train/offload_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/device/cores.h"
#include "headrace/train/offload_bench_report.h"
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

  TempFolder folder_;
  OffloadBenchSettings settings_;
};

TEST_F(OffloadBenchTest, EveryCellHasARowWithExactBytesAndAWholeStallTable) {
  int64_t cells = 0;
  const std::vector<int> cores = device::allowed_cores();
  const OffloadBenchResult result =
      bench_offload(settings_, {.on_cell = [&](const OffloadBenchRow& row, const graph::Recording& recording) {
                      ++cells;
                      EXPECT_EQ(recording.timeline.data_ready_ns.size(), row.step_times_s.size() + 1);
                    }});
  EXPECT_EQ(device::allowed_cores(), cores) << "the thread stayed pinned";
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
    int64_t sum = 0;
    for (const graph::StallRow& stall : row.stall.rows) sum += stall.ns;
    EXPECT_EQ(sum, row.stall.idle_ns);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"none", "exact", "none clip", "exact clip", "exact+share clip"}));
  EXPECT_EQ(cells, 5);
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
  settings_.link_share = 0;
  expect_refused("--link-share");
  for (const char* share : {"all", "1.5", "-1", "0.5x", ""}) {
    settings_.device_share = share;
    expect_refused("--device-share");
  }
}

}  // namespace
}  // namespace headrace::train
