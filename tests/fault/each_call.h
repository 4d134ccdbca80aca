// Something that writes, with a bad disk, a death or a power loss at each of its calls.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/errors.h"
#include "tests/fault/child_process.h"
#include "tests/fault/memory_folder.h"
#include "tests/fault/numbered_files.h"
#include "tests/fault/power_loss_files.h"
#include "tests/fault/record.h"

namespace headrace::fault {

struct DiskFault {
  const char* name;
  Plan::What what;
  int error_number;
  const char* text;  // what the error says
};

inline constexpr DiskFault kDiskFaults[] = {
    {"disk full for one call (ENOSPC)", Plan::What::kFail, ENOSPC, "No space left on device"},
    {"disk full from a call on (ENOSPC)", Plan::What::kFailFromThen, ENOSPC, "No space left on device"},
    {"disk error at one call (EIO)", Plan::What::kFail, EIO, "Input/output error"},
    {"disk errors from a call on (EIO)", Plan::What::kFailFromThen, EIO, "Input/output error"}};

// What the error says of a fault in this folder: the path and, where the disk is full, what is free.
inline void expect_clear(const std::string& text, const DiskFault& disk_fault, const std::filesystem::path& folder) {
  using ::testing::HasSubstr;
  EXPECT_THAT(text, HasSubstr(disk_fault.text));
  EXPECT_THAT(text, HasSubstr(folder.native())) << "the path";
  if (disk_fault.error_number == ENOSPC && text.find("cannot examine") == std::string::npos) {
    EXPECT_THAT(text, HasSubstr(" free for us. Free space there or choose another folder."));
  }
}

// Whose failure may not go unnoticed. That of other calls may: what was to be removed is removed the next time.
inline bool is_essential(const std::string& call) { return call.starts_with("write ") || call.starts_with("sync "); }

struct Trial {
  using Act = std::function<void(const std::filesystem::path&)>;
  std::string where;  // for record()
  Act before;         // makes the folder
  Act act;            // during which the fault occurs
  // Looks at what is left and fails the test where it may not be so. `is_done`: act() returned as if all was well.
  std::function<Outcome(const std::filesystem::path&, bool is_done)> look;
  Act after = {};  // what the next one to use the folder does, and what must be there then
  bool can_exchange = true;
};

class EachCall {
 public:
  explicit EachCall(Trial trial) : trial_(std::move(trial)) {
    {
      UnsyncedFiles files;
      const os::FileSystemScope scope(files);
      trial_.before(folder_ / "start");
    }
    NumberedFiles files({.can_exchange = trial_.can_exchange});
    const os::FileSystemScope scope(files);
    trial_.act(fresh());
    for (int64_t at = 0; at < files.num_calls(); ++at) calls_.push_back(files.call(at));
  }
  const std::vector<std::string>& calls() const { return calls_; }

  // For that one call, or from it on.
  void with_a_bad_disk() {
    for (const DiskFault& disk_fault : kDiskFaults) {
      for (int64_t at = 0; at < std::ssize(calls_); ++at) {
        SCOPED_TRACE(trial_.where + ", call " + std::to_string(at) + " " + calls_[at] + ", " + disk_fault.name);
        const std::filesystem::path run = fresh();
        std::string text;
        {
          NumberedFiles files({disk_fault.what, at, disk_fault.error_number, trial_.can_exchange});
          const os::FileSystemScope scope(files);
          text = text_of_act(run);
        }
        EXPECT_FALSE(text.empty() && is_essential(calls_[at]));
        if (!text.empty()) expect_clear(text, disk_fault, run);
        finish(run, disk_fault.name, calls_[at], text.empty(),
               text.empty() ? "no error, " : "an error that names the path, ");
      }
    }
  }

  // Before it, and in its middle.
  void with_a_death() {
    for (const auto& [what, name] :
         {std::pair{Plan::What::kExit, "process killed before a call"},
          std::pair{Plan::What::kExitHalfway, "process killed in a write, or right after another call"}}) {
      for (int64_t at = 0; at < std::ssize(calls_); ++at) {
        SCOPED_TRACE(trial_.where + ", call " + std::to_string(at) + " " + calls_[at] + ", " + name);
        const std::filesystem::path run = fresh();
        ChildProcess child([&, what = what] {
          NumberedFiles files({what, at, 0, trial_.can_exchange});
          const os::FileSystemScope scope(files);
          trial_.act(run);
          return 0;
        });
        ASSERT_EQ(child.wait(), kKilled);
        finish(run, name, calls_[at], false, "");
      }
    }
  }

  // Before it, and after the last, with every fate of what was not synced.
  void with_a_power_loss() {
    for (int64_t at = 0; at <= std::ssize(calls_); ++at) {
      const bool is_done = at == std::ssize(calls_);
      const std::string call = is_done ? "after the last" : calls_[at];
      const std::filesystem::path run = fresh();
      PowerLossFiles disk(run);
      {
        NumberedFiles files({Plan::What::kFailFromThen, at, EIO, trial_.can_exchange}, disk);
        const os::FileSystemScope scope(files);
        const bool has_failed = !text_of_act(run).empty();
        EXPECT_TRUE(has_failed == !is_done || !is_essential(call)) << call;
      }
      std::filesystem::remove_all(run);
      for (const Fate& fate : fates()) {
        SCOPED_TRACE(trial_.where + ", call " + std::to_string(at) + " " + call + ", " + fate.name + " " +
                     std::to_string(fate.survival.seed));
        restore(disk.left(fate.survival), run);
        finish(run, fate.name, call, is_done, "");
        std::filesystem::remove_all(run);
      }
    }
  }

 private:
  // As it was before act().
  std::filesystem::path fresh() const {
    const std::filesystem::path run = folder_ / "run";
    std::filesystem::remove_all(run);
    std::filesystem::copy(folder_ / "start", run, std::filesystem::copy_options::recursive);
    return run;
  }
  std::string text_of_act(const std::filesystem::path& run) const {
    try {
      trial_.act(run);
    } catch (const IoError& error) {
      return error.what();
    }
    return "";
  }
  void finish(const std::filesystem::path& run, const std::string& fault, const std::string& call, bool is_done,
              const std::string& said) const {
    Outcome outcome = trial_.look(run, is_done);
    outcome.happened = said + outcome.happened;
    record(fault, trial_.where, call, outcome);
    UnsyncedFiles files;
    const os::FileSystemScope scope(files);
    if (trial_.after) trial_.after(run);
  }

  const Trial trial_;
  const MemoryFolder folder_;
  std::vector<std::string> calls_;
};

}  // namespace headrace::fault
