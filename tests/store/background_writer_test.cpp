#include "headrace/store/background_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <thread>

#include "headrace/base/errors.h"
#include "headrace/os/file_system.h"
#include "tests/store/sample.h"
#include "tests/support/temp_folder.h"

namespace headrace::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Snapshot snapshot_of(int64_t step) {
  const Sample given = sample(static_cast<uint64_t>(step));
  return copy_snapshot(step, given.tensors, given.state);
}

// A disk that accepts no write before it is told to.
struct SlowDisk : os::FileSystem {
  std::promise<void> reached, go_on;
  std::shared_future<void> may_go_on = go_on.get_future().share();
  bool is_first = true;

  int64_t write_at(int descriptor, std::span<const std::byte> bytes, int64_t offset) override {
    if (std::exchange(is_first, false)) reached.set_value();
    may_go_on.wait();
    return FileSystem::write_at(descriptor, bytes, offset);
  }
};

// Once told to, a disk that cannot write.
struct BadDisk : os::FileSystem {
  std::atomic<bool> is_bad{true};

  int64_t write_at(int descriptor, std::span<const std::byte> bytes, int64_t offset) override {
    if (!is_bad) return FileSystem::write_at(descriptor, bytes, offset);
    errno = EIO;
    return -1;
  }
};

TEST(BackgroundWriter, WritesWhatItWasGiven) {
  TempFolder folder;
  const RunLock lock(folder.path());
  BackgroundWriter writer(lock, {});
  EXPECT_THAT(writer.wait(), IsEmpty());
  writer.start(snapshot_of(1));
  writer.start(snapshot_of(2));
  const auto finished = writer.wait();
  ASSERT_EQ(finished.size(), 2U);
  EXPECT_EQ(difference(finished[0].checkpoint, sample(1)), "");
  EXPECT_EQ(difference(finished[1].checkpoint, sample(2)), "");
  EXPECT_GT(finished[1].write_time_s, 0);
  EXPECT_THAT(writer.poll(), IsEmpty()) << "told once";
}

TEST(BackgroundWriter, TrainingGoesOnWhileTheDiskIsSlow) {
  TempFolder folder;
  const RunLock lock(folder.path());
  SlowDisk disk;
  const os::FileSystemScope scope(disk);
  BackgroundWriter writer(lock, {});
  Sample given = sample(1);
  writer.start(copy_snapshot(1, given.tensors, given.state));
  disk.reached.get_future().wait();
  for (auto& buffer : given.buffers) std::fill(buffer->begin(), buffer->end(), std::byte{0});  // the next step
  EXPECT_TRUE(writer.is_writing());
  EXPECT_THAT(writer.poll(), IsEmpty());
  EXPECT_THAT(list_checkpoints(folder.path()), IsEmpty());
  disk.go_on.set_value();
  EXPECT_EQ(difference(writer.wait().at(0).checkpoint, sample(1)), "");
  EXPECT_FALSE(writer.is_writing());
}

TEST(BackgroundWriter, LetsGoOfTheBuffersOnceWritten) {
  TempFolder folder;
  const RunLock lock(folder.path());
  BackgroundWriter writer(lock, {});
  Snapshot snapshot = snapshot_of(1);
  const std::weak_ptr<const void> buffers = snapshot.buffers;
  writer.start(std::move(snapshot));
  writer.wait();
  EXPECT_TRUE(buffers.expired());
}

TEST(BackgroundWriter, TheNextCallThrowsWhatWentWrongAndThenItGoesOn) {
  TempFolder folder;
  const RunLock lock(folder.path());
  BadDisk disk;
  const os::FileSystemScope scope(disk);
  BackgroundWriter writer(lock, {});
  writer.start(snapshot_of(1));
  EXPECT_THROW(writer.wait(), IoError);
  EXPECT_THAT(writer.wait(), IsEmpty()) << "thrown once";
  writer.start(snapshot_of(2));
  EXPECT_THROW(writer.start(snapshot_of(3)), IoError);
  writer.start(snapshot_of(4));
  while (writer.is_writing()) std::this_thread::yield();
  EXPECT_THROW(writer.poll(), IoError);
  disk.is_bad = false;
  writer.start(snapshot_of(5));
  EXPECT_EQ(difference(writer.wait().at(0).checkpoint, sample(5)), "");
  EXPECT_THAT(names_in(folder / "checkpoints"), ElementsAre("latest", "step-00000005"));
}

TEST(BackgroundWriter, ItsEndWaitsForTheWrite) {
  TempFolder folder;
  const RunLock lock(folder.path());
  { BackgroundWriter(lock, {}).start(snapshot_of(1)); }
  EXPECT_EQ(difference(list_checkpoints(folder.path()).at(0), sample(1)), "");
}

TEST(BackgroundWriter, ItsEndTellsAnErrorThatNobodyAskedFor) {
  TempFolder folder;
  const RunLock lock(folder.path());
  BadDisk disk;
  const os::FileSystemScope scope(disk);
  std::string unseen;
  BackgroundOptions options;
  options.on_unseen_error = [&](const std::string& text) { unseen = text; };
  { BackgroundWriter(lock, options).start(snapshot_of(1)); }
  EXPECT_THAT(unseen, HasSubstr("[os.write] wrote 0 of"));
}

TEST(BackgroundWriter, KeepsTheLastAsTold) {
  TempFolder folder;
  const RunLock lock(folder.path());
  BackgroundOptions options;
  options.keep_last = 2;
  BackgroundWriter writer(lock, options);
  for (int64_t step = 1; step <= 4; ++step) writer.start(snapshot_of(step));
  EXPECT_EQ(writer.wait().size(), 4U);
  EXPECT_THAT(names_in(folder / "checkpoints"), ElementsAre("latest", "step-00000003", "step-00000004"));
}

TEST(BackgroundWriter, ItsThreadBeginsAsToldAndCopies) {
  TempFolder folder;
  const RunLock lock(folder.path());
  std::thread::id begun, did, copied;
  BackgroundOptions options;
  options.on_thread_start = [&] { begun = std::this_thread::get_id(); };
  BackgroundWriter writer(lock, options);
  writer.start([&] { did = std::this_thread::get_id(); });
  Snapshot snapshot = snapshot_of(1);
  snapshot.copy_tensors = [&, tensors = snapshot.tensors] {
    copied = std::this_thread::get_id();
    return tensors;
  };
  writer.start(std::move(snapshot));
  writer.wait();
  EXPECT_EQ(begun, did);
  EXPECT_EQ(begun, copied);
  EXPECT_NE(begun, std::this_thread::get_id());
}

TEST(BackgroundWriter, ATaskThatThrowsIsToldOfLikeAWrite) {
  TempFolder folder;
  const RunLock lock(folder.path());
  BackgroundWriter writer(lock, {});
  writer.start([] { throw CapacityError("test.task", "no memory"); });
  EXPECT_THROW(writer.wait(), CapacityError);
  writer.start(snapshot_of(1));
  EXPECT_EQ(writer.wait().size(), 1U);
}

TEST(BackgroundWriter, CanBeGivenUp) {
  TempFolder folder;
  const RunLock lock(folder.path());
  BackgroundOptions options;
  options.write.on_progress = [](int64_t, int64_t) { return false; };
  BackgroundWriter writer(lock, options);
  writer.start(snapshot_of(1));
  EXPECT_THAT(writer.wait(), IsEmpty());
  EXPECT_THAT(list_checkpoints(folder.path()), IsEmpty());
}

TEST(BackgroundWriter, AHundredStartsAndEnds) {
  TempFolder folder;
  const RunLock lock(folder.path());
  BackgroundOptions options;
  options.keep_last = 1;
  for (int64_t cycle = 0; cycle < 100; ++cycle) {
    BackgroundWriter writer(lock, options);
    if (cycle % 3 > 0) writer.start(snapshot_of(cycle));
    if (cycle % 3 > 1) writer.wait();
  }
  EXPECT_EQ(difference(list_checkpoints(folder.path()).at(0), sample(98)), "");
}

}  // namespace
}  // namespace headrace::store
