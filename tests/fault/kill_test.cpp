// The process is killed at every call of a save and of a removal.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fault/child_process.h"
#include "tests/fault/memory_folder.h"
#include "tests/fault/scenario.h"

namespace headrace::fault {
namespace {

class Kill : public testing::TestWithParam<Scenario> {
 protected:
  void kill_at_every_call(Plan::What what, const std::string& fault) {
    const Scenario& scenario = GetParam();
    MemoryFolder folder;
    const Template start(scenario, folder / "start");
    const std::vector<std::string> calls = calls_of(scenario, start, folder / "counted");
    ASSERT_GT(calls.size(), 20U);
    for (int64_t at = 0; at < std::ssize(calls); ++at) {
      SCOPED_TRACE(scenario.name + ", call " + std::to_string(at) + ": " + calls[at]);
      const fs::path run = folder / ("run" + std::to_string(at));
      start.copy_to(run);
      ChildProcess child([&] {
        NumberedFiles files({what, at, 0, scenario.can_exchange});
        const os::FileSystemScope scope(files);
        scenario.act(run);
        return 0;
      });
      ASSERT_EQ(child.wait(), kKilled);
      record(fault, scenario.name, calls[at], look(run, scenario, false));
      expect_clean_after_next_save(run);
      fs::remove_all(run);
    }
  }
};

TEST_P(Kill, BeforeEachCall) { kill_at_every_call(Plan::What::kExit, "process killed before a call"); }

TEST_P(Kill, InTheMiddleOfEachCall) {
  kill_at_every_call(Plan::What::kExitHalfway, "process killed in a write, or right after another call");
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Kill, testing::ValuesIn(scenarios()), scenario_name);

}  // namespace
}  // namespace headrace::fault
