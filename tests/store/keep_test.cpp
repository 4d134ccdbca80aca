#include "headrace/store/keep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "headrace/base/errors.h"
#include "headrace/os/file_system.h"
#include "headrace/store/names.h"
#include "tests/store/sample.h"
#include "tests/support/temp_folder.h"

namespace headrace::store {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KeepLast : public testing::Test {
 protected:
  KeepLast() : lock_(folder_.path()) {
    for (int64_t step = 1; step <= 4; ++step) {
      const Sample given = sample(static_cast<uint64_t>(step));
      write_checkpoint(lock_, step, given.tensors, given.state);
    }
  }
  fs::path checkpoints() const { return folder_ / "checkpoints"; }

  TempFolder folder_;
  RunLock lock_;
};

TEST_F(KeepLast, RemovesTheOlderOnes) {
  keep_last(lock_, 10);
  EXPECT_EQ(list_checkpoints(folder_.path()).size(), 4U);
  keep_last(lock_, 2);
  EXPECT_THAT(names_in(checkpoints()), ElementsAre("latest", "step-00000003", "step-00000004"));
  EXPECT_THROW(keep_last(lock_, 0), InternalError);
}

TEST_F(KeepLast, DamagedOnesNeitherCountNorGo) {
  fs::remove(checkpoints() / "step-00000004/state.json");
  fs::remove(checkpoints() / "step-00000001/state.json");
  keep_last(lock_, 1);
  EXPECT_THAT(names_in(checkpoints()), ElementsAre("latest", "step-00000001", "step-00000003", "step-00000004"));
}

// A run that was resumed from step 2 on purpose and saved at once.
TEST_F(KeepLast, TheOneThatLatestNamesStays) {
  put_file(checkpoints() / kLatestName, "step-00000002\n");
  keep_last(lock_, 1);
  EXPECT_THAT(names_in(checkpoints()), ElementsAre("latest", "step-00000002", "step-00000004"));
}

TEST_F(KeepLast, LeavesWhatIsNotOurs) {
  fs::create_directories(checkpoints() / "step-1");
  fs::create_directories(checkpoints() / ".git");
  put_file(checkpoints() / "notes.txt", "x");
  fs::create_directory_symlink(checkpoints() / "step-00000004", checkpoints() / "step-00000000");
  keep_last(lock_, 1);
  EXPECT_THAT(names_in(checkpoints()),
              ElementsAre(".git", "latest", "notes.txt", "step-00000000", "step-00000004", "step-1"));
  EXPECT_EQ(difference(read_info(checkpoints() / "step-00000004", 4), sample(4)), "");
}

// A writer without the call that swaps two names died between its two renames.
TEST_F(KeepLast, ACheckpointThatWasAboutToBeReplacedCountsAndGetsItsNameBack) {
  const fs::path hidden = checkpoints() / ".step-00000004.replaced-4711";
  fs::rename(checkpoints() / "step-00000004", hidden);
  const auto listed = list_checkpoints(folder_.path());
  EXPECT_EQ(listed.at(0).folder, hidden);
  EXPECT_EQ(difference(listed.at(0), sample(4)), "");
  keep_last(lock_, 1);
  EXPECT_THAT(names_in(checkpoints()), ElementsAre("latest", "step-00000004"));
  fs::create_directories(hidden);
  keep_last(lock_, 1);
  EXPECT_THAT(names_in(checkpoints()), ElementsAre("latest", "step-00000004")) << "the new one had its place";
}

TEST_F(KeepLast, TriesEverythingAndThrowsTheFirstError) {
  struct StickyDisk : os::FileSystem {
    int remove_file(const fs::path& path) override {
      if (path.native().find("step-00000001") == std::string::npos) return FileSystem::remove_file(path);
      errno = EACCES;
      return -1;
    }
  };
  StickyDisk disk;
  const os::FileSystemScope scope(disk);
  try {
    keep_last(lock_, 1);
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot remove " + checkpoints().native() + "/.step-00000001.removed-"));
  }
  EXPECT_THAT(names_in(checkpoints()), ElementsAre(hidden_name(1, Hidden::kRemoved), "latest", "step-00000004"));
  const Sample given = sample(5);
  EXPECT_TRUE(write_checkpoint(lock_, 5, given.tensors, given.state)) << "leftovers that stay do not stop a save";
}

}  // namespace
}  // namespace headrace::store
