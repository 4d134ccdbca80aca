#include "headrace/store/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "headrace/store/names.h"
#include "tests/fault/numbered_files.h"
#include "tests/store/sample.h"
#include "tests/support/temp_folder.h"

namespace headrace::store {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kFirst = "tensors-00001-of-00003.safetensors";

class Verify : public testing::Test {
 protected:
  Verify() : lock_(folder_.path()) {
    for (const int64_t step : {100, 200}) {
      const Sample given = sample(static_cast<uint64_t>(step));
      write_checkpoint(lock_, step, given.tensors, given.state, kSmallShards);
    }
  }
  fs::path newest() const { return folder_ / "checkpoints/step-00000200"; }
  CheckpointInfo info() const { return read_info(newest(), 200); }
  // What is said when one newer file is not as it was.
  std::vector<std::string> faults_after(const std::function<void(const fs::path&)>& damage) const {
    damage(newest() / kFirst);
    return verify(info());
  }

  TempFolder folder_;
  RunLock lock_;
};

TEST_F(Verify, AWholeCheckpointHasNoFaults) {
  EXPECT_TRUE(info().is_complete());
  EXPECT_THAT(verify(info()), IsEmpty());
}

TEST_F(Verify, ListsNewestFirst) {
  const auto listed = list_checkpoints(folder_.path());
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed[0].step, 200);
  EXPECT_EQ(listed[1].step, 100);
  EXPECT_THAT(list_checkpoints(folder_ / "none"), IsEmpty());
}

TEST_F(Verify, NamesAMissingFile) {
  EXPECT_THAT(faults_after([](const fs::path& path) { fs::remove(path); }),
              ElementsAre(AllOf(HasSubstr(kFirst), HasSubstr("is missing"))));
  EXPECT_FALSE(info().is_complete());
}

TEST_F(Verify, NamesBothSizes) {
  const auto bytes = fs::file_size(newest() / kFirst);
  EXPECT_THAT(faults_after([&](const fs::path& path) { fs::resize_file(path, bytes - 1); }),
              ElementsAre(AllOf(HasSubstr(kFirst), HasSubstr("has " + std::to_string(bytes - 1) + " bytes; " +
                                                             std::to_string(bytes) + " were written"))));
  EXPECT_THAT(faults_after([&](const fs::path& path) { fs::resize_file(path, bytes + 1); }),
              ElementsAre(HasSubstr(kFirst)));
}

TEST_F(Verify, NamesBothHashes) {
  const std::string wanted = info().manifest.files[0].xxh3_128;
  EXPECT_THAT(faults_after([](const fs::path& path) {
                std::string text = os::read_file(path);
                text.back() = static_cast<char>(text.back() ^ 1);
                put_file(path, text);
              }),
              ElementsAre(AllOf(HasSubstr(kFirst), HasSubstr("has the hash "), HasSubstr(wanted + " was written"))));
  EXPECT_TRUE(info().is_complete()) << "only reading it all can tell";
}

TEST_F(Verify, FollowsNoLinks) {
  EXPECT_THAT(faults_after([&](const fs::path& path) {
                fs::rename(path, folder_ / "elsewhere");
                fs::create_symlink(folder_ / "elsewhere", path);
              }),
              ElementsAre(AllOf(HasSubstr(kFirst), HasSubstr("is a link"))));
  fs::rename(newest(), folder_ / "moved");
  fs::create_directory_symlink(folder_ / "moved", newest());
  EXPECT_THAT(info().fault, HasSubstr("step-00000200 is a link"));
}

TEST_F(Verify, WaitsForNoPipes) {
  EXPECT_THAT(faults_after([&](const fs::path& path) {
                fs::remove(path);
                ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
              }),
              ElementsAre(HasSubstr("is not a regular file")));
  fs::remove(newest() / kManifestName);
  ASSERT_EQ(::mkfifo((newest() / kManifestName).c_str(), 0600), 0);
  EXPECT_THAT(info().fault, HasSubstr("manifest.json is not a regular file"));
}

TEST_F(Verify, NamesEveryFaultyFile) {
  fs::remove(newest() / kFirst);
  fs::resize_file(newest() / kStateName, 0);
  EXPECT_THAT(verify(info()), ElementsAre(HasSubstr(kFirst), HasSubstr("state.json has 0 bytes")));
}

TEST_F(Verify, AManifestOfAnotherStepIsRefused) {
  fs::rename(newest(), folder_ / "checkpoints/step-00000300");
  EXPECT_THAT(list_checkpoints(folder_.path())[0].fault, HasSubstr("is of step 200, its folder of 300"));
}

TEST_F(Verify, AHugeFileOfTheRightNameCostsNoMemory) {
  fs::resize_file(newest() / kManifestName, uintmax_t{1} << 40);
  EXPECT_THAT(info().fault, HasSubstr("at most 4194304 are allowed"));
}

TEST_F(Verify, ABadDiskIsAFaultOfItsFile) {
  int64_t num_skipped = 0;
  for (int64_t at = 0; at < 100; ++at) {
    fault::NumberedFiles files({fault::Plan::What::kFail, at, EIO});
    const os::FileSystemScope scope(files);
    std::vector<SkippedCheckpoint> skipped;
    const auto found = find_newest_verified(folder_.path(), skipped);
    if (at >= files.num_calls()) break;
    ASSERT_TRUE(found);
    EXPECT_EQ(found->step, skipped.empty() ? 200 : 100);
    if (skipped.empty()) continue;  // a failed close, or something of the older one's
    ++num_skipped;
    EXPECT_THAT(skipped[0].faults, ElementsAre(AllOf(HasSubstr("step-00000200"), HasSubstr("Input/output error"))));
  }
  EXPECT_GT(num_skipped, 10);
}

TEST_F(Verify, CanBeStopped) {
  EXPECT_THROW(verify(info(), [](int64_t, int64_t) { return false; }), RunError);
  int64_t done = 0, total = 0;
  verify(info(), [&](int64_t done_bytes, int64_t total_bytes) {
    done = done_bytes;
    total = total_bytes;
    return true;
  });
  EXPECT_EQ(done, total);
  EXPECT_EQ(total, info().manifest.total_bytes());
}

TEST_F(Verify, FindsTheNewestThatIsWholeAndSaysWhatItSkipped) {
  std::vector<SkippedCheckpoint> skipped;
  EXPECT_EQ(find_newest_verified(folder_.path(), skipped)->step, 200);
  EXPECT_THAT(skipped, IsEmpty());
  fs::remove(newest() / kFirst);
  const auto found = find_newest_verified(folder_.path(), skipped);
  EXPECT_EQ(difference(*found, sample(100)), "");
  ASSERT_EQ(skipped.size(), 1U);
  EXPECT_EQ(skipped[0].info.step, 200);
  EXPECT_THAT(skipped[0].faults, ElementsAre(HasSubstr("is missing")));
  fs::remove_all(found->folder);
  skipped.clear();
  EXPECT_FALSE(find_newest_verified(folder_.path(), skipped));
  EXPECT_EQ(skipped.size(), 1U);
}

TEST_F(Verify, LatestCountsOnlyWhenItNamesACheckpoint) {
  const fs::path latest = folder_ / "checkpoints/latest";
  EXPECT_EQ(read_latest(folder_.path()), "step-00000200");
  for (const std::string text : {"", "step-00000300\n", "../step-00000100\n", "step-00000100\n\n"}) {
    put_file(latest, text);
    EXPECT_EQ(read_latest(folder_.path()), "") << text;
  }
  fs::resize_file(latest, uintmax_t{1} << 40);
  EXPECT_EQ(read_latest(folder_.path()), "");
  fs::remove(latest);
  fs::create_symlink("/proc/self/status", latest);
  EXPECT_EQ(read_latest(folder_.path()), "");
}

}  // namespace
}  // namespace headrace::store
