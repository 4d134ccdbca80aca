#include "headrace/telemetry/metrics_log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <sstream>
#include <thread>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "tests/support/temp_folder.h"

namespace headrace::telemetry {
namespace {

OrderedJson step_line(int64_t step) { return {{"step", step}, {"loss", 2.5}}; }

TEST(MetricsLog, WritesOneObjectALineInOrder) {
  TempFolder folder;
  MetricsLog log(folder / "metrics.jsonl");
  log.write(step_line(1));
  EXPECT_EQ(os::read_file(folder / "metrics.jsonl"), "{\"step\":1,\"loss\":2.5}\n") << "must not wait in a buffer";
  log.write({{"text", "two\nlines \xff"}, {"loss", std::numeric_limits<double>::quiet_NaN()}});
  EXPECT_EQ(os::read_file(folder / "metrics.jsonl"),
            "{\"step\":1,\"loss\":2.5}\n{\"text\":\"two\\nlines \xef\xbf\xbd\",\"loss\":null}\n");
}

// Cut after each byte, as a kill or a full disk may leave it: whole lines stay, nothing is glued to a torn one.
TEST(MetricsLog, RepairsATornLastLine) {
  const std::string line = "{\"step\":1}\n", text = line + "{\"step\":2}\n";
  for (size_t length = 0; length <= text.size(); ++length) {
    TempFolder folder;
    os::write_file_atomically(folder / "m", text.substr(0, length));
    MetricsLog(folder / "m").write({{"step", 3}});
    const std::string whole = length == text.size() ? text : length >= line.size() ? line : "";
    EXPECT_EQ(os::read_file(folder / "m"), whole + "{\"step\":3}\n") << length;
  }
}

TEST(MetricsLog, ResumeDropsLinesThatWillBeWrittenAgain) {
  TempFolder folder;
  {
    MetricsLog log(folder / "m");
    log.write({{"event", "start"}});
    for (int64_t step = 1; step <= 10; ++step) log.write(step_line(step));
  }
  MetricsLog(folder / "m", 8).write(step_line(9));
  std::istringstream lines(os::read_file(folder / "m"));
  std::vector<int64_t> steps;
  for (std::string line; std::getline(lines, line);) steps.push_back(Json::parse(line).value("step", int64_t{0}));
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(MetricsLog, ThreadsNeverInterleave) {
  TempFolder folder;
  MetricsLog log(folder / "m");
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&log, thread] {
        for (int i = 0; i < 200; ++i) log.write({{"thread", thread}, {"text", std::string(300, 'x')}});
      });
    }
  }
  std::istringstream lines(os::read_file(folder / "m"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_TRUE(Json::accept(line)) << line;
  EXPECT_EQ(count, 800);
}

TEST(MetricsLog, AKilledProcessLosesNothingItWrote) {
  TempFolder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    MetricsLog log(folder / "m");
    for (int64_t step = 1; step <= 50; ++step) log.write(step_line(step));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const std::string text = os::read_file(folder / "m");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 50);
}

TEST(MetricsLog, ReportsWhatCannotBeWritten) { EXPECT_THROW(MetricsLog("/no/such/folder/m"), IoError); }

}  // namespace
}  // namespace headrace::telemetry
