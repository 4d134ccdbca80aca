// What is going on in a run folder when something goes wrong, and what must be found there afterwards.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "headrace/store/keep.h"
#include "headrace/store/names.h"
#include "tests/fault/numbered_files.h"
#include "tests/fault/record.h"
#include "tests/store/sample.h"

namespace headrace::fault {

namespace fs = std::filesystem;

inline void save(const fs::path& run_folder, int64_t step, uint64_t seed) {
  const store::RunLock lock(run_folder);
  const store::Sample given = store::sample(seed);
  store::write_checkpoint(lock, step, given.tensors, given.state, store::kSmallShards);
}

inline void make_folder(const fs::path& run_folder) { fs::create_directories(run_folder); }

constexpr uint64_t kOld = 1, kNew = 2;  // seeds of the checkpoints in question

struct Scenario {
  std::string name;                             // for people
  std::function<void(const fs::path&)> before;  // makes the run folder
  std::function<void(const fs::path&)> act;     // during which the fault occurs
  bool may_find_none = false;                   // nothing was saved before
  bool can_exchange = true;                     // the file system can swap two names
  bool must_find_old = false;                   // what `act` does changes nothing that is looked for
};

inline void leave_as_one_that_died(const fs::path& run) {
  save(run, 100, kOld);
  fs::copy(run / "checkpoints/step-00000100", run / "checkpoints/.step-00000150.partial-4711");
  fs::copy(run / "checkpoints/step-00000100", run / "checkpoints/.step-00000050.removed-4711");
}

inline void save_three(const fs::path& run) {
  for (const int64_t step : {10, 20}) save(run, step, static_cast<uint64_t>(step));
  save(run, 100, kOld);
}

inline std::vector<Scenario> scenarios() {
  const auto save_new = [](const fs::path& run) { save(run, 200, kNew); };
  const auto save_old = [](const fs::path& run) { save(run, 100, kOld); };
  const auto save_old_as_200 = [](const fs::path& run) { save(run, 200, kOld); };
  const auto keep_one = [](const fs::path& run) { store::keep_last(store::RunLock(run), 1); };
  return {
      {.name = "a save: the first one", .before = make_folder, .act = save_new, .may_find_none = true},
      {.name = "a save: after an older one", .before = save_old, .act = save_new},
      {.name = "a save: after one that died", .before = leave_as_one_that_died, .act = save_new},
      {.name = "a save: of the same step again", .before = save_old_as_200, .act = save_new},
      {.name = "a save: of the same step where names cannot be swapped",
       .before = save_old_as_200,
       .act = save_new,
       .can_exchange = false},
      {.name = "a removal: of all but the newest", .before = save_three, .act = keep_one, .must_find_old = true},
  };
}

// For the framework's messages.
inline void PrintTo(const Scenario& scenario, std::ostream* stream) { *stream << scenario.name; }

inline std::string scenario_name(const testing::TestParamInfo<Scenario>& info) {
  std::string name = info.param.name;
  std::erase(name, ':');
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

inline void expect_latest_is_whole(const fs::path& run) {
  const auto step = store::step_in(store::read_latest(run));
  ASSERT_TRUE(step) << "latest names no checkpoint";
  for (const store::CheckpointInfo& info : store::list_checkpoints(run)) {
    if (info.step == *step) return;  // and look() verifies it
  }
  ADD_FAILURE() << "latest names a checkpoint that is not listed";
}

// Looks as a run does that resumes. Fails the test when anything but the old or the new checkpoint is found, when a
// visible folder is not whole, or when `latest` names one that is not. `is_done`: act() returned as if all was well.
inline Outcome look(const fs::path& run, const Scenario& scenario, bool is_done) {
  std::vector<store::SkippedCheckpoint> skipped;
  const auto found = store::find_newest_verified(run, skipped);
  for (const store::CheckpointInfo& info : store::list_checkpoints(run)) EXPECT_EQ(store::verify(info).size(), 0U);
  if (fs::exists(store::checkpoints_of(run) / store::kLatestName)) expect_latest_is_whole(run);
  const bool is_new = found && store::difference(*found, store::sample(kNew)).empty();
  const bool is_old = found && store::difference(*found, store::sample(kOld)).empty();
  EXPECT_TRUE(is_new || is_old || (!found && scenario.may_find_none));
  if (scenario.must_find_old) {
    EXPECT_TRUE(is_old);
    return {"the newest checkpoint is found", "nothing"};
  }
  if (is_done) {
    EXPECT_TRUE(is_new) << "a save that returned must be found";
    EXPECT_EQ(store::read_latest(run), "step-00000200");
  }
  if (is_new) return {"the new checkpoint is found", "nothing"};
  if (is_old) return {"the older checkpoint is found", "the save under way"};
  return {"no checkpoint is found", "the save under way"};
}

// Nothing that begins with a dot may be there after the next save.
inline void expect_clean_after_next_save(const fs::path& run) {
  UnsyncedFiles files;
  const os::FileSystemScope scope(files);
  save(run, 900, 9);
  for (const std::string& name : store::names_in(store::checkpoints_of(run)))
    EXPECT_FALSE(name.starts_with(".")) << name;
}

// The scenario's folder in a state from which each trial starts.
class Template {
 public:
  Template(const Scenario& scenario, const fs::path& folder) : folder_(folder) {
    UnsyncedFiles files;
    const os::FileSystemScope scope(files);
    scenario.before(folder_);
  }
  void copy_to(const fs::path& run) const { fs::copy(folder_, run, fs::copy_options::recursive); }

 private:
  fs::path folder_;
};

// The names of the calls that act() makes.
inline std::vector<std::string> calls_of(const Scenario& scenario, const Template& start, const fs::path& run) {
  start.copy_to(run);
  NumberedFiles files({.can_exchange = scenario.can_exchange});
  const os::FileSystemScope scope(files);
  scenario.act(run);
  std::vector<std::string> calls;
  for (int64_t at = 0; at < files.num_calls(); ++at) calls.push_back(files.call(at));
  return calls;
}

}  // namespace headrace::fault
