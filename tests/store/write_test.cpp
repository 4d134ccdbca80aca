#include "headrace/store/write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "headrace/os/file_system.h"
#include "headrace/store/names.h"
#include "tests/store/sample.h"
#include "tests/support/temp_folder.h"

namespace headrace::store {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(WriteCheckpoint, LeavesWhatWasGivenAndNothingElse) {
  TempFolder folder;
  const RunLock lock(folder / "run");
  const Sample given = sample(1);
  const auto written = write_checkpoint(lock, 123, given.tensors, given.state, kSmallShards);
  ASSERT_TRUE(written);
  EXPECT_EQ(written->folder, folder / "run/checkpoints/step-00000123");
  EXPECT_EQ(difference(*written, given), "");
  EXPECT_THAT(names_in(folder / "run"), ElementsAre("checkpoints", "run.lock"));
  EXPECT_THAT(names_in(folder / "run/checkpoints"), ElementsAre("latest", "step-00000123"));
  EXPECT_THAT(names_in(written->folder),
              ElementsAre("manifest.json", "state.json", "tensors-00001-of-00003.safetensors",
                          "tensors-00002-of-00003.safetensors", "tensors-00003-of-00003.safetensors"));
  EXPECT_EQ(os::read_file(folder / "run/checkpoints/latest"), "step-00000123\n");
}

TEST(WriteCheckpoint, TellsTheSameThatIsFoundLater) {
  TempFolder folder;
  const RunLock lock(folder.path());
  const Sample given = sample(1);
  const auto written = write_checkpoint(lock, 7, given.tensors, given.state);
  const auto listed = list_checkpoints(folder.path());
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].manifest, written->manifest);
  EXPECT_EQ(listed[0].folder, written->folder);
}

TEST(WriteCheckpoint, TakesEmptyPlans) {
  TempFolder folder;
  const RunLock lock(folder.path());
  Sample nothing;
  nothing.state = Json::object();
  const auto written = write_checkpoint(lock, 0, nothing.tensors, nothing.state);
  EXPECT_EQ(difference(*written, nothing), "");
}

TEST(WriteCheckpoint, ReplacesOneOfTheSameStep) {
  TempFolder folder;
  const RunLock lock(folder.path());
  const Sample first = sample(1), second = sample(2);
  write_checkpoint(lock, 5, first.tensors, first.state, kSmallShards);
  const auto written = write_checkpoint(lock, 5, second.tensors, second.state);
  EXPECT_EQ(difference(*written, second), "");
  EXPECT_THAT(names_in(folder / "checkpoints"), ElementsAre("latest", "step-00000005"));
}

TEST(WriteCheckpoint, RefusesADiskThatIsTooSmallBeforeWriting) {
  struct SmallDisk : os::FileSystem {
    int64_t free_bytes(const fs::path&) override { return 1 << 20; }
  };
  TempFolder folder;
  const RunLock lock(folder.path());
  SmallDisk disk;
  const os::FileSystemScope scope(disk);
  const Sample given = sample(1);
  try {
    write_checkpoint(lock, 5, given.tensors, given.state);
    FAIL() << "no error";
  } catch (const CapacityError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the checkpoint of step 5 needs 1.00 MiB; the disk of"));
    EXPECT_THAT(error.what(), HasSubstr("has 1.00 MiB free. Free space, keep fewer checkpoints"));
  }
  EXPECT_THAT(names_in(folder / "checkpoints"), IsEmpty());
}

TEST(WriteCheckpoint, ReportsProgressUpToTheLastByte) {
  TempFolder folder;
  const RunLock lock(folder.path());
  const Sample given = sample(1);
  std::vector<int64_t> done;
  int64_t total = 0;
  WriteOptions options = kSmallShards;
  options.on_progress = [&](int64_t done_bytes, int64_t total_bytes) {
    done.push_back(done_bytes);
    total = total_bytes;
    return true;
  };
  const auto written = write_checkpoint(lock, 5, given.tensors, given.state, options);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), total);
  EXPECT_EQ(total, written->manifest.total_bytes());
}

TEST(WriteCheckpoint, GivesUpAtAnyPointWithoutATrace) {
  TempFolder folder;
  const RunLock lock(folder.path());
  const Sample old = sample(1), given = sample(2);
  write_checkpoint(lock, 1, old.tensors, old.state);
  int64_t num_calls = 0;
  WriteOptions options = kSmallShards;
  for (int64_t stop_at = 1; stop_at > num_calls; ++stop_at) {
    num_calls = 0;
    options.on_progress = [&](int64_t, int64_t) { return ++num_calls < stop_at; };
    if (write_checkpoint(lock, 2, given.tensors, given.state, options)) {
      EXPECT_GT(num_calls, 5);
      break;
    }
    EXPECT_EQ(num_calls, stop_at);
    EXPECT_THAT(names_in(folder / "checkpoints"), ElementsAre("latest", "step-00000001"));
    num_calls = 0;
  }
  EXPECT_EQ(read_latest(folder.path()), "step-00000002");
}

TEST(WriteCheckpoint, RefusesWhatDoesNotFitTogether) {
  TempFolder folder;
  const RunLock lock(folder.path());
  const Sample given = sample(1);
  EXPECT_THROW(write_checkpoint(lock, -1, given.tensors, given.state), InternalError);
  auto tensors = given.tensors;
  tensors[0].shape = {3, 6};
  EXPECT_THROW(write_checkpoint(lock, 1, tensors, given.state), InternalError);
  tensors = given.tensors;
  tensors.push_back(tensors[0]);
  EXPECT_THROW(write_checkpoint(lock, 1, tensors, given.state), ConfigError);
  EXPECT_THROW(write_checkpoint(lock, 1, given.tensors, given.state, {.max_shard_bytes = 0}), ConfigError);
  EXPECT_THROW(write_checkpoint(lock, 1, given.tensors, {{"text", "\xff"}}), InternalError);
  EXPECT_THROW(write_checkpoint(lock, 1, given.tensors, {{"x", std::string(kMaxStateBytes, 'x')}}), InternalError);
  EXPECT_THAT(list_checkpoints(folder.path()), IsEmpty());
}

TEST(WriteCheckpoint, RemovesWhatDeadWritersLeft) {
  TempFolder folder;
  const RunLock lock(folder.path());
  fs::create_directories(folder / "checkpoints/.step-00000009.partial-4711/deeper");
  put_file(folder / "checkpoints/.step-00000009.partial-4711/deeper/x", "x");
  fs::create_directories(folder / "checkpoints/.step-00000003.removed-4711");
  fs::create_directories(folder / "checkpoints/.mine");
  put_file(folder / "checkpoints/.latest.4711-0.tmp", "x");
  put_file(folder / "checkpoints/notes.txt", "x");
  const Sample given = sample(1);
  write_checkpoint(lock, 5, given.tensors, given.state);
  EXPECT_THAT(names_in(folder / "checkpoints"), ElementsAre(".mine", "latest", "notes.txt", "step-00000005"));
}

TEST(WriteCheckpoint, FollowsNoLinkThatLooksLikeALeftover) {
  TempFolder folder;
  const RunLock lock(folder / "run");
  fs::create_directories(folder / "elsewhere");
  fs::create_directories(folder / "run/checkpoints");
  fs::create_directory_symlink(folder / "elsewhere", folder / "run/checkpoints" / hidden_name(5, Hidden::kPartial));
  const Sample given = sample(1);
  EXPECT_EQ(difference(*write_checkpoint(lock, 5, given.tensors, given.state), given), "");
  EXPECT_THAT(names_in(folder / "elsewhere"), IsEmpty());
  EXPECT_FALSE(fs::is_symlink(folder / "run/checkpoints/step-00000005"));
}

TEST(WriteCheckpoint, WritesThroughALinkToAnotherDisk) {
  TempFolder folder;
  fs::create_directories(folder / "scratch");
  fs::create_directories(folder / "run");
  fs::create_directory_symlink(folder / "scratch", folder / "run/checkpoints");
  const RunLock lock(folder / "run");
  const Sample given = sample(1);
  EXPECT_EQ(difference(*write_checkpoint(lock, 5, given.tensors, given.state), given), "");
  EXPECT_THAT(names_in(folder / "scratch"), ElementsAre("latest", "step-00000005"));
}

}  // namespace
}  // namespace headrace::store
