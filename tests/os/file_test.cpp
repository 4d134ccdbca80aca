#include "headrace/os/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <functional>
#include <sstream>

#include "headrace/base/errors.h"
#include "tests/support/temp_folder.h"

namespace headrace::os {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void put(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

size_t num_entries(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

void expect_io_error(int error_number, const std::string& text, const std::function<void()>& action) {
  try {
    action();
    FAIL() << "no error; expected: " << text;
  } catch (const IoError& error) {
    EXPECT_EQ(error.error_number(), error_number) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

TEST(ReadFile, ReturnsAllBytesOfAnySize) {
  TempFolder folder;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{3000000}}) {
    std::string text(size, '\0');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + i / 256);
    put(folder / "x", text);
    EXPECT_TRUE(read_file(folder / "x") == text) << size;
  }
}

TEST(ReadFile, ReadsFilesWithoutASize) { EXPECT_THAT(read_file("/proc/self/status"), HasSubstr("VmRSS")); }

TEST(ReadFile, NamesTheMissingPath) {
  expect_io_error(ENOENT, "/no/such/file", [] { read_file("/no/such/file"); });
  expect_io_error(EISDIR, "at offset 0 of /tmp", [] { read_file("/tmp"); });
}

TEST(ReadFile, RefusesMoreThanTheLimitWithBothSizes) {
  TempFolder folder;
  put(folder / "x", std::string(1000, 'x'));
  EXPECT_EQ(read_file(folder / "x", 1000).size(), 1000U);
  expect_io_error(EFBIG, "1000 bytes where at most 999", [&] { read_file(folder / "x", 999); });
  expect_io_error(EFBIG, "at most 5000", [] { read_file("/dev/zero", 5000); });
}

TEST(OutputFile, WritesAppendsAndPatches) {
  TempFolder folder;
  OutputFile file(folder / "x");
  file.write("hello world");
  file.write_at(0, std::as_bytes(std::span("J", 1)));
  EXPECT_EQ(file.offset(), 11);
  file.write("!");
  file.sync();
  file.close();
  file.close();
  EXPECT_EQ(read_file(folder / "x"), "Jello world!");
  OutputFile more(folder / "x", OutputFile::Mode::kAppend);
  EXPECT_EQ(more.offset(), 12);
  more.write("?");
  OutputFile moved(std::move(more));
  moved.write("?");
  moved.close();
  EXPECT_EQ(read_file(folder / "x"), "Jello world!??");
}

TEST(OutputFile, ReportsAFullDisk) {
  OutputFile file("/dev/full");
  expect_io_error(ENOSPC, "wrote 0 of 3 bytes at offset 0 of /dev/full", [&] { file.write("abc"); });
}

// The size limit makes the system write a part first and refuse the rest: a short write, then an error.
TEST(OutputFile, ContinuesShortWritesAndSaysHowFarItCame) {
  TempFolder folder;
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 10000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  OutputFile file(folder / "x");
  expect_io_error(EFBIG, "wrote 10000 of 16384 bytes at offset 0", [&] { file.write(std::string(16384, 'x')); });
  put(folder / "old", "old");
  expect_io_error(EFBIG, "of 16384", [&] { write_file_atomically(folder / "old", std::string(16384, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(read_file(folder / "old"), "old");
  EXPECT_EQ(num_entries(folder.path()), 2U) << "a temporary file stayed";
}

TEST(WriteFileAtomically, ReplacesAndLeavesNothingElse) {
  TempFolder folder;
  write_file_atomically(folder / "x", "one");
  write_file_atomically(folder / "x", "two");
  EXPECT_EQ(read_file(folder / "x"), "two");
  EXPECT_EQ(num_entries(folder.path()), 1U);
  expect_io_error(ENOENT, "/none/.x.", [&] { write_file_atomically(folder / "none/x", "one"); });
}

TEST(PublishFolder, MovesIntoPlace) {
  TempFolder folder;
  fs::create_directory(folder / "tmp");
  put(folder / "tmp/x", "new");
  publish_folder(folder / "tmp", folder / "final");
  EXPECT_EQ(read_file(folder / "final/x"), "new");
  EXPECT_FALSE(fs::exists(folder / "tmp"));
}

TEST(PublishFolder, RefusesOrReplacesAFullFolder) {
  TempFolder folder;
  fs::create_directory(folder / "tmp");
  fs::create_directory(folder / "final");
  put(folder / "tmp/x", "new");
  put(folder / "final/old", "old");
  expect_io_error(EEXIST, "final", [&] { publish_folder(folder / "tmp", folder / "final"); });
  EXPECT_EQ(read_file(folder / "final/old"), "old");
  publish_folder(folder / "tmp", folder / "final", IfExists::kReplace);
  EXPECT_EQ(read_file(folder / "final/x"), "new");
  EXPECT_FALSE(fs::exists(folder / "final/old"));
  EXPECT_EQ(num_entries(folder.path()), 1U);
}

TEST(PublishFolder, TakesOverAnEmptyFolder) {
  TempFolder folder;
  fs::create_directory(folder / "tmp");
  fs::create_directory(folder / "final");
  put(folder / "tmp/x", "new");
  publish_folder(folder / "tmp", folder / "final");
  EXPECT_EQ(read_file(folder / "final/x"), "new");
}

TEST(FreeBytes, AsksTheNearestExistingFolder) {
  TempFolder folder;
  EXPECT_GT(free_bytes(folder.path()), 0);
  EXPECT_GT(free_bytes(folder / "not/yet/there"), 0);
  EXPECT_GT(free_bytes("relative-and-not-there"), 0);
}

TEST(ChildOf, AcceptsNamesInside) {
  TempFolder folder;
  put(folder / "a", "x");
  EXPECT_EQ(child_of(folder.path(), "a"), folder / "a");
  EXPECT_EQ(child_of(folder.path(), "not-yet"), folder / "not-yet");
  EXPECT_EQ(child_of(folder.path(), "sub/b"), folder / "sub/b");
  EXPECT_EQ(child_of(folder.path(), "..a"), folder / "..a");
  fs::create_symlink("a", folder / "link");
  EXPECT_EQ(child_of(folder.path(), "link"), folder / "link");
  EXPECT_NO_THROW(child_of(folder.path() / "", "a"));
  EXPECT_NO_THROW(child_of(folder / "later/", "a"));
}

TEST(ChildOf, RefusesNamesThatLeave) {
  TempFolder folder;
  for (const std::string name : {"", ".", "/etc/passwd", "..", "../x", "a/../../x", "a/.."}) {
    EXPECT_THROW(child_of(folder.path(), name), DataError) << name;
  }
  EXPECT_THROW(child_of(folder.path(), std::string_view("a\0b", 3)), DataError);
}

TEST(ChildOf, RefusesLinksThatLeave) {
  TempFolder folder;
  fs::create_directories(folder / "model");
  fs::create_directories(folder / "model-secret");
  put(folder / "model-secret/x", "x");
  fs::create_symlink(folder / "model-secret/x", folder / "model/file");
  fs::create_symlink("../model-secret", folder / "model/folder");
  fs::create_symlink(folder / "nothing", folder / "model/dangling");
  for (const std::string name : {"file", "folder/x", "folder/new", "dangling"}) {
    EXPECT_THROW(child_of(folder / "model", name), DataError) << name;
  }
}

TEST(ChildOf, FollowsTheHuggingFaceCache) {
  TempFolder folder;
  fs::create_directories(folder / "blobs");
  fs::create_directories(folder / "snapshots/abc");
  put(folder / "blobs/123", "x");
  put(folder / "secret", "x");
  fs::create_symlink("../../blobs/123", folder / "snapshots/abc/model.safetensors");
  fs::create_symlink("../../secret", folder / "snapshots/abc/bad");
  EXPECT_NO_THROW(child_of(folder / "snapshots/abc", "model.safetensors"));
  EXPECT_THROW(child_of(folder / "snapshots/abc", "bad"), DataError);
}

}  // namespace
}  // namespace headrace::os
