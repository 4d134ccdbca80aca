#include "headrace/os/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <functional>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "tests/support/temp_folder.h"

namespace headrace::os {
namespace {

namespace fs = std::filesystem;

void put(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

int error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const IoError& error) {
    return error.error_number();
  }
  return 0;
}

TEST(CreateFolders, MakesWhatIsMissing) {
  TempFolder folder;
  create_folders(folder / "a/b/c");
  create_folders(folder / "a/b/c/");
  create_folders(folder / "a/d/");
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  EXPECT_TRUE(fs::is_directory(folder / "a/d"));
  put(folder / "file", "x");
  EXPECT_EQ(error_of([&] { create_folders(folder / "file"); }), EEXIST);
  EXPECT_EQ(error_of([&] { create_folders(folder / "file/x"); }), EEXIST);
}

TEST(CreateFolders, FollowsALinkToAFolder) {
  TempFolder folder;
  create_folders(folder / "elsewhere");
  fs::create_directory_symlink(folder / "elsewhere", folder / "link");
  create_folders(folder / "link/x");
  EXPECT_TRUE(fs::is_directory(folder / "elsewhere/x"));
}

TEST(RenamePath, ReplacesFilesAndEmptyFolders) {
  TempFolder folder;
  put(folder / "a", "new");
  put(folder / "b", "old");
  rename_path(folder / "a", folder / "b");
  EXPECT_EQ(read_file(folder / "b"), "new");
  EXPECT_EQ(error_of([&] { rename_path(folder / "a", folder / "b"); }), ENOENT);
  create_folders(folder / "full/x");
  create_folders(folder / "other/y");
  EXPECT_EQ(error_of([&] { rename_path(folder / "other", folder / "full"); }), ENOTEMPTY);
}

TEST(ExchangeNames, SwapsWhereTheFileSystemCan) {
  TempFolder folder;
  put(folder / "a", "1");
  create_folders(folder / "b/x");
  if (!exchange_names(folder / "a", folder / "b")) GTEST_SKIP() << "this file system cannot swap two names";
  EXPECT_EQ(read_file(folder / "b"), "1");
  EXPECT_TRUE(fs::is_directory(folder / "a/x"));
  EXPECT_EQ(error_of([&] { exchange_names(folder / "a", folder / "none"); }), ENOENT);
}

TEST(RemoveFile, SaysWhetherThereWasOne) {
  TempFolder folder;
  put(folder / "a", "x");
  EXPECT_TRUE(remove_file(folder / "a"));
  EXPECT_FALSE(remove_file(folder / "a"));
  EXPECT_EQ(error_of([&] { remove_file(folder.path()); }), EISDIR);
}

TEST(RemoveTree, RemovesEverythingInsideAndFollowsNoLink) {
  TempFolder folder;
  create_folders(folder / "kept");
  put(folder / "kept/file", "kept");
  create_folders(folder / "tree/a/b");
  put(folder / "tree/a/b/file", "x");
  put(folder / "tree/file", "x");
  fs::create_directory_symlink(folder / "kept", folder / "tree/a/link");
  fs::create_symlink(folder / "kept/file", folder / "tree/link");
  fs::create_symlink("nothing", folder / "tree/dangling");
  remove_tree(folder / "tree");
  EXPECT_FALSE(fs::exists(folder / "tree"));
  EXPECT_EQ(read_file(folder / "kept/file"), "kept");
  EXPECT_NO_THROW(remove_tree(folder / "tree"));
}

TEST(RemoveTree, RefusesWhatIsNoFolder) {
  TempFolder folder;
  create_folders(folder / "kept");
  put(folder / "kept/file", "kept");
  fs::create_directory_symlink(folder / "kept", folder / "link");
  EXPECT_EQ(error_of([&] { remove_tree(folder / "link"); }), ENOTDIR);
  EXPECT_EQ(error_of([&] { remove_tree(folder / "kept/file"); }), ENOTDIR);
  EXPECT_EQ(read_file(folder / "kept/file"), "kept");
}

}  // namespace
}  // namespace headrace::os
