// The disk is full or bad, or the process dies, at each call by which a run that goes on writes metrics.jsonl.
#include <gtest/gtest.h>

#include <string>

#include "headrace/os/file.h"
#include "headrace/telemetry/metrics_log.h"
#include "tests/fault/each_call.h"

namespace headrace::telemetry {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSaved = 2, kLast = 5;  // steps: of the checkpoint, of the run

std::string line_of(int64_t step) { return "{\"step\":" + std::to_string(step) + "}\n"; }

std::string lines_until(int64_t step) {
  std::string text;
  for (int64_t i = 1; i <= step; ++i) text += line_of(i);
  return text;
}

void go_on(const fs::path& folder) {
  MetricsLog log(folder / "metrics.jsonl", kSaved);
  for (int64_t step = kSaved + 1; step <= kLast; ++step) log.write({{"step", step}});
}

// Three steps and half a line were written, two steps saved.
fault::Trial trial() {
  return {.where = "metrics.jsonl of a run that goes on",
          .before =
              [](const fs::path& folder) {
                fs::create_directories(folder);
                os::write_file_atomically(folder / "metrics.jsonl", lines_until(3) + "{\"st");
              },
          .act = go_on,
          .look = [](const fs::path& folder, bool is_done) -> fault::Outcome {
            const std::string text = os::read_file(folder / "metrics.jsonl");
            EXPECT_TRUE(text.starts_with(lines_until(kSaved))) << text;
            EXPECT_TRUE(!is_done || text == lines_until(kLast)) << text;
            return {"each line of a saved step is there",
                    text == lines_until(kLast) ? "nothing" : "lines that are written again"};
          },
          .after =
              [](const fs::path& folder) {
                go_on(folder);
                EXPECT_EQ(os::read_file(folder / "metrics.jsonl"), lines_until(kLast));
              }};
}

TEST(MetricsFault, ABadDiskLosesNoLineOfASavedStep) { fault::EachCall(trial()).with_a_bad_disk(); }

TEST(MetricsFault, ADeathLosesNoLineOfASavedStep) { fault::EachCall(trial()).with_a_death(); }

}  // namespace
}  // namespace headrace::telemetry
