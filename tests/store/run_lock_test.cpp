#include "headrace/store/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "tests/fault/child_process.h"
#include "tests/support/temp_folder.h"

namespace headrace::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal_of(const std::filesystem::path& folder) {
  try {
    const RunLock lock(folder);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "taken";
}

// A process that holds the lock until it is killed.
class Holder {
 public:
  explicit Holder(const std::filesystem::path& folder) {
    EXPECT_EQ(::pipe(ready_.data()), 0);
    child_.emplace([&] {
      const RunLock lock(folder);
      EXPECT_EQ(::write(ready_[1], "x", 1), 1);
      while (true) ::pause();
      return 0;
    });
    char byte = 0;
    EXPECT_EQ(::read(ready_[0], &byte, 1), 1);
  }
  ~Holder() {
    for (const int end : ready_) ::close(end);
  }
  fault::ChildProcess& process() { return *child_; }

 private:
  std::array<int, 2> ready_{};
  std::optional<fault::ChildProcess> child_;
};

TEST(RunLock, MakesTheFolderAndIsFreeAgainAfterwards) {
  TempFolder folder;
  EXPECT_EQ(refusal_of(folder / "new/run"), "taken");
  EXPECT_EQ(refusal_of(folder / "new/run"), "taken");
}

TEST(RunLock, RefusesASecondProcessNamingTheHolder) {
  TempFolder folder;
  Holder holder(folder.path());
  std::array<char, 256> host{};
  ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  EXPECT_THAT(refusal_of(folder.path()),
              AllOf(HasSubstr("the run folder " + folder.path().native() + " is in use by process " +
                              std::to_string(holder.process().pid()) + " on host " + host.data() + " since 2"),
                    HasSubstr("Wait for it to end or choose another folder")));
}

TEST(RunLock, GoesWithAProcessThatIsKilled) {
  TempFolder folder;
  Holder holder(folder.path());
  EXPECT_NE(refusal_of(folder.path()), "taken");
  holder.process().kill();
  EXPECT_EQ(refusal_of(folder.path()), "taken");
}

TEST(RunLock, KeepsTheSameProcessOutToo) {
  TempFolder folder;
  const RunLock lock(folder.path());
  EXPECT_THAT(refusal_of(folder.path()), HasSubstr("process " + std::to_string(::getpid())));
}

TEST(RunLock, ANoteFromAStrangerIsNoReasonToFailDifferently) {
  for (const std::string note : {"", "{", "[1]", "{\"pid\":{}}", "{\"host\":\"\\u0007\"}"}) {
    TempFolder folder;
    const RunLock lock(folder.path());
    os::OutputFile(folder / "run.lock").write(note);
    EXPECT_THAT(refusal_of(folder.path()), HasSubstr("is in use by process unknown on host ")) << note;
  }
}

}  // namespace
}  // namespace headrace::store
