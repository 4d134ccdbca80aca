// The power goes at every call of a save and of a removal, with every fate of what was not synced.
#include <gtest/gtest.h>

#include <cerrno>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "headrace/os/folder.h"
#include "tests/fault/memory_folder.h"
#include "tests/fault/power_loss_files.h"
#include "tests/fault/scenario.h"

namespace headrace::fault {
namespace {

using Names = Survival::Names;
using Bytes = Survival::Bytes;

class PowerLoss : public testing::TestWithParam<Scenario> {};

TEST_P(PowerLoss, AtEachCallAndAfterTheLast) {
  const Scenario& scenario = GetParam();
  MemoryFolder folder;
  const Template start(scenario, folder / "start");
  const std::vector<std::string> calls = calls_of(scenario, start, folder / "counted");
  std::map<std::map<fs::path, std::string>, Outcome> seen;  // many calls and fates leave the same
  for (int64_t at = 0; at <= std::ssize(calls); ++at) {
    const bool is_done = at == std::ssize(calls);
    const std::string call = is_done ? "after the last" : calls[at];
    const fs::path run = folder / "run";
    start.copy_to(run);
    PowerLossFiles disk(run);
    {
      NumberedFiles files({Plan::What::kFailFromThen, at, EIO, scenario.can_exchange}, disk);
      const os::FileSystemScope scope(files);
      try {
        scenario.act(run);
      } catch (const IoError&) {
        EXPECT_FALSE(is_done);
      }
    }
    fs::remove_all(run);
    for (const Fate& fate : fates()) {
      SCOPED_TRACE(scenario.name + ", call " + std::to_string(at) + " " + call + ", " + fate.name + " " +
                   std::to_string(fate.survival.seed));
      const auto left = disk.left(fate.survival);
      if (is_done || !seen.contains(left)) {
        restore(left, folder / "restored");
        seen[left] = look(folder / "restored", scenario, is_done);
        fs::remove_all(folder / "restored");
      }
      record(fate.name, scenario.name, call, seen[left]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Scenarios, PowerLoss, testing::ValuesIn(scenarios()), scenario_name);

// A process that died had made the folder; nobody had synced its name.
TEST(PowerLossOnce, ASaveSyncsTheFolderThatItFinds) {
  MemoryFolder folder;
  const fs::path run = folder / "run";
  fs::create_directories(run);
  PowerLossFiles disk(run);
  {
    const os::FileSystemScope scope(disk);
    ASSERT_EQ(disk.make_folder(run / "checkpoints"), 0);
    save(run, 200, kNew);
  }
  restore(disk.left({}), folder / "restored");
  std::vector<store::SkippedCheckpoint> skipped;
  EXPECT_TRUE(store::find_newest_verified(folder / "restored", skipped));
}

// The stand-in itself must forget what was not synced, or the tests above could not fail.
TEST(PowerLossFiles, KeepsWhatWasSyncedAndForgetsTheRest) {
  MemoryFolder folder;
  const fs::path run = folder / "run";
  fs::create_directories(run / "old");
  store::put_file(run / "old/x", "old");
  PowerLossFiles disk(run);
  {
    const os::FileSystemScope scope(disk);
    os::OutputFile(run / "unnamed").write("x");  // neither synced nor named for good
    os::OutputFile synced(run / "synced");
    synced.write("1234");
    synced.sync();
    synced.write("5678");
    os::sync_folder(run);
    os::OutputFile(run / "old/x").write("newer");
    os::rename_path(run / "old", run / "renamed");
    os::OutputFile(run / "late").write("y");
  }
  const auto found = [&](Survival survival) {
    std::string all;
    for (const auto& [path, bytes] : disk.left(survival)) {
      if (path.has_filename()) all += path.native() + ":" + bytes + " ";
    }
    return all;
  };
  EXPECT_EQ(found({Names::kLost, Bytes::kLost}), "old/x:old synced:1234 unnamed: ");
  EXPECT_EQ(found({Names::kKept, Bytes::kLost}), "late: renamed/x:old synced:1234 unnamed: ");
  EXPECT_EQ(found({Names::kKept, Bytes::kKept}), "late:y renamed/x:newer synced:12345678 unnamed:x ");
  EXPECT_EQ(found({Names::kLost, Bytes::kHalf}), "old/x:ne synced:1234 unnamed: ");
  EXPECT_EQ(found({Names::kLost, Bytes::kZeros}).size(), std::string("old/x:..... synced:........ unnamed:. ").size());
}

}  // namespace
}  // namespace headrace::fault
