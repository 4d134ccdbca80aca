// The disk is full or bad at every call of a save and of a removal: for that one call, or from it on.
#include <gtest/gtest.h>

#include <cerrno>

#include "headrace/base/errors.h"
#include "tests/fault/each_call.h"
#include "tests/fault/memory_folder.h"
#include "tests/fault/scenario.h"

namespace headrace::fault {
namespace {

class DiskErrors : public testing::TestWithParam<Scenario> {};

// What act() did: empty, or what the error said.
std::string text_of_act(const Scenario& scenario, const fs::path& run) {
  try {
    scenario.act(run);
  } catch (const IoError& error) {
    return error.what();
  }
  return "";
}

TEST_P(DiskErrors, AtEachCall) {
  const Scenario& scenario = GetParam();
  MemoryFolder folder;
  const Template start(scenario, folder / "start");
  const std::vector<std::string> calls = calls_of(scenario, start, folder / "counted");
  for (const DiskFault& disk_fault : kDiskFaults) {
    for (int64_t at = 0; at < std::ssize(calls); ++at) {
      SCOPED_TRACE(scenario.name + ", call " + std::to_string(at) + " " + calls[at] + ", " + disk_fault.name);
      const fs::path run = folder / "run";
      start.copy_to(run);
      std::string text;
      {
        NumberedFiles files({disk_fault.what, at, disk_fault.error_number, scenario.can_exchange});
        const os::FileSystemScope scope(files);
        text = text_of_act(scenario, run);
      }
      EXPECT_FALSE(text.empty() && is_essential(calls[at]));
      if (!text.empty()) expect_clear(text, disk_fault, run);
      Outcome outcome = look(run, scenario, text.empty());
      outcome.happened = (text.empty() ? "no error, " : "an error that names the path, ") + outcome.happened;
      record(disk_fault.name, scenario.name, calls[at], outcome);
      expect_clean_after_next_save(run);
      fs::remove_all(run);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Scenarios, DiskErrors, testing::ValuesIn(scenarios()), scenario_name);

class Interruptions : public testing::TestWithParam<Scenario> {};

// Short writes and interrupted calls are no faults: the bytes must be the same.
TEST_P(Interruptions, ChangeNothing) {
  const Scenario& scenario = GetParam();
  MemoryFolder folder;
  const Template start(scenario, folder / "start");
  const std::vector<std::string> calls = calls_of(scenario, start, folder / "counted");
  const auto expected = store::list_checkpoints(folder / "counted");
  const auto check = [&](const Plan& plan, const std::string& fault, const std::string& call) {
    SCOPED_TRACE(scenario.name + ", " + fault + " " + call);
    const fs::path run = folder / "run";
    start.copy_to(run);
    NumberedFiles files(plan);
    const os::FileSystemScope scope(files);
    EXPECT_EQ(text_of_act(scenario, run), "");
    Outcome outcome = look(run, scenario, true);
    outcome.happened = "the same bytes, " + outcome.happened;
    record(fault, scenario.name, call, outcome);
    const auto found = store::list_checkpoints(run);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].manifest.files, expected[i].manifest.files);
    fs::remove_all(run);
  };
  for (int64_t at = 0; at < std::ssize(calls); ++at) {
    // Not asked of close: what it leaves behind then is the system's choice, and on Linux the file is closed.
    check({Plan::What::kFail, at, EINTR, scenario.can_exchange}, "a call interrupted by a signal (EINTR)", calls[at]);
    check({Plan::What::kShorten, at, 0, scenario.can_exchange}, "one byte read or written instead of all", calls[at]);
  }
  check({Plan::What::kShorten, -1, 0, scenario.can_exchange}, "one byte read or written at each call", "all");
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Interruptions, testing::ValuesIn(scenarios()), scenario_name);

}  // namespace
}  // namespace headrace::fault
