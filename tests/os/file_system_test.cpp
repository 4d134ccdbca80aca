#include "headrace/os/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <functional>
#include <map>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "headrace/os/folder.h"
#include "headrace/os/input_file.h"
#include "tests/fault/numbered_files.h"
#include "tests/fault/power_loss_files.h"
#include "tests/support/temp_folder.h"

namespace headrace::os {
namespace {

namespace fs = std::filesystem;
using fault::NumberedFiles;
using fault::Plan;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Something with every call of the seam: two files, one folder published over another, names and removal.
void use_every_call(const fs::path& root) {
  create_folders(root / "old/deeper");
  OutputFile file(root / "old/data");
  file.write("0123456789");
  file.write_at(2, std::as_bytes(std::span("ab", 2)));
  file.sync();
  file.close();
  write_file_atomically(root / "text", "some text");
  create_folders(root / "new");
  write_file_atomically(root / "new/data", read_file(root / "old/data") + read_file(root / "text"));
  publish_folder(root / "new", root / "old", IfExists::kReplace);
  remove_file(root / "text");
  if (free_bytes(root) < 1) throw InternalError("test", "no space");
}

int64_t calls_of(const std::function<void(const fs::path&)>& action) {
  TempFolder folder;
  NumberedFiles files({});
  const FileSystemScope scope(files);
  action(folder.path());
  return files.num_calls();
}

TEST(FileSystem, TheSystemIsUsedUnlessATestStandsIn) {
  FileSystem& before = file_system();
  NumberedFiles files({});
  {
    const FileSystemScope scope(files);
    EXPECT_EQ(&file_system(), &files);
    EXPECT_THROW(FileSystemScope{files}, InternalError);
  }
  EXPECT_EQ(&file_system(), &before);
}

TEST(FileSystem, AnInterruptedCallIsRepeated) {
  const int64_t num_calls = calls_of(use_every_call);
  ASSERT_GT(num_calls, 30);
  for (int64_t at = 0; at < num_calls; ++at) {
    TempFolder folder;
    NumberedFiles files({Plan::What::kFail, at, EINTR});
    const FileSystemScope scope(files);
    EXPECT_NO_THROW(use_every_call(folder.path())) << files.call(at);
    EXPECT_EQ(read_file(folder / "old/data"), "01ab456789some text") << files.call(at);
  }
}

TEST(FileSystem, ShortReadsAndWritesAreContinued) {
  TempFolder folder;
  NumberedFiles files({Plan::What::kShorten, -1});
  const FileSystemScope scope(files);
  use_every_call(folder.path());
  EXPECT_EQ(read_file(folder / "old/data"), "01ab456789some text");
  InputFile input(folder / "old/data");
  std::array<std::byte, 100> bytes{};
  EXPECT_EQ(input.read(bytes), 19U);
}

// A failed close of a file that was only read loses nothing and is no error; every other failure is one.
TEST(FileSystem, EveryFailureBecomesAnErrorThatNamesThePath) {
  const int64_t num_calls = calls_of(use_every_call);
  int64_t num_errors = 0;
  for (int64_t at = 0; at < num_calls; ++at) {
    TempFolder folder;
    NumberedFiles files({Plan::What::kFail, at, EIO});
    const FileSystemScope scope(files);
    try {
      use_every_call(folder.path());
      EXPECT_THAT(files.call(at), HasSubstr("close")) << at;
    } catch (const IoError& error) {
      ++num_errors;
      EXPECT_EQ(error.error_number(), EIO) << files.call(at);
      EXPECT_THAT(error.what(), AllOf(HasSubstr(folder.path().native()), HasSubstr("Input/output error")));
    }
  }
  EXPECT_GT(num_errors, num_calls / 2);
}

// Says that a file system is full and how much is left.
struct FullDisk : FileSystem {
  int64_t write_at(int, std::span<const std::byte>, int64_t) override {
    errno = ENOSPC;
    return -1;
  }
  int64_t free_bytes(const fs::path&) override { return 1536; }
};

TEST(FileSystem, AFullDiskIsNamedWithWhatWasNeededAndWhatIsFree) {
  TempFolder folder;
  FullDisk disk;
  const FileSystemScope scope(disk);
  OutputFile file(folder / "x");
  try {
    file.write(std::string(5000, 'x'));
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_EQ(error.error_number(), ENOSPC);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("wrote 0 of 5000 bytes at offset 0 of " + (folder / "x").native()),
                                    HasSubstr("1.50 KiB free")));
  }
}

// A file system without the call that swaps two names, such as NFS.
struct NoExchange : FileSystem {
  int exchange(const fs::path&, const fs::path&) override {
    errno = EINVAL;
    return -1;
  }
};

TEST(FileSystem, AFolderIsReplacedWithoutTheCallThatSwaps) {
  TempFolder folder;
  NoExchange files;
  const FileSystemScope scope(files);
  use_every_call(folder.path());
  EXPECT_EQ(read_file(folder / "old/data"), "01ab456789some text");
  EXPECT_FALSE(fs::exists(folder / "old/deeper"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

// What is left when the power goes after `action`, of all that was not synced nothing.
std::map<fs::path, std::string> left_after(const std::function<void(const fs::path&)>& action) {
  TempFolder folder;
  fault::PowerLossFiles disk(folder.path());
  const FileSystemScope scope(disk);
  action(folder.path());
  return disk.left({});
}

TEST(FileSystem, WhatWasMadeForGoodSurvivesAPowerLoss) {
  using ::testing::Contains;
  using ::testing::Pair;
  using ::testing::UnorderedElementsAre;
  EXPECT_THAT(left_after([](const fs::path& root) { create_folders(root / "a/b"); }),
              UnorderedElementsAre(Pair("", ""), Pair("a/", ""), Pair("a/b/", "")));
  EXPECT_THAT(left_after([](const fs::path& root) { write_file_atomically(root / "x", "text"); }),
              UnorderedElementsAre(Pair("", ""), Pair("x", "text")));
  EXPECT_THAT(left_after([](const fs::path& root) {
                for (const std::string name : {"one", "other"}) {
                  create_folders(root / name);
                  write_file_atomically(root / name / "x", name);
                }
                publish_folder(root / "one", root / "other", IfExists::kReplace);
              }),
              Contains(Pair("other/x", "one")));
}

}  // namespace
}  // namespace headrace::os
