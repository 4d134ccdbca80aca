#include "headrace/os/lock_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "headrace/base/errors.h"
#include "tests/support/temp_folder.h"

namespace headrace::os {
namespace {

namespace fs = std::filesystem;

TEST(LockFile, OneHolderAtATime) {
  TempFolder folder;
  {
    LockFile first(folder / "lock");
    EXPECT_TRUE(first.is_held());
    first.write_note("first");
    const LockFile second(folder / "lock");
    EXPECT_FALSE(second.is_held());
    EXPECT_EQ(second.note(), "first");
  }
  EXPECT_TRUE(LockFile(folder / "lock").is_held());
}

TEST(LockFile, ANoteReplacesTheOneBefore) {
  TempFolder folder;
  LockFile file(folder / "lock");
  EXPECT_EQ(file.note(), "");
  file.write_note(std::string(10'000, 'x'));
  EXPECT_EQ(file.note(), std::string(LockFile::kMaxNoteBytes, 'x'));
  file.write_note("short");
  EXPECT_EQ(file.note(), "short");
}

TEST(LockFile, OneThatWasRemovedKeepsNobodyOut) {
  TempFolder folder;
  const LockFile first(folder / "lock");
  fs::remove(folder / "lock");
  const LockFile second(folder / "lock");
  EXPECT_TRUE(second.is_held());
  EXPECT_FALSE(LockFile(folder / "lock").is_held());
}

TEST(LockFile, FollowsNoLink) {
  TempFolder folder;
  fs::create_symlink(folder / "elsewhere", folder / "lock");
  try {
    const LockFile file(folder / "lock");
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_EQ(error.error_number(), ELOOP);
  }
  EXPECT_FALSE(fs::exists(folder / "elsewhere"));
}

}  // namespace
}  // namespace headrace::os
