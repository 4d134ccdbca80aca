#include "headrace/os/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "headrace/base/errors.h"
#include "tests/support/temp_folder.h"

namespace headrace::os {
namespace {

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, ShowsTheContentsAndMoves) {
  TempFolder folder;
  const std::string text(10000, 'x');
  std::ofstream(folder / "x") << text;
  MappedFile file(folder / "x");
  EXPECT_EQ(text_of(file), text);
  MappedFile other(std::move(file));
  EXPECT_TRUE(file.bytes().empty());
  EXPECT_EQ(text_of(other), text);
  file = std::move(other);
  EXPECT_EQ(text_of(file), text);
}

TEST(MappedFile, AdviceChangesNothing) {
  TempFolder folder;
  const std::string text(100000, 'y');
  std::ofstream(folder / "x") << text;
  const MappedFile file(folder / "x");
  file.will_need(5, 5000);
  file.done_with(1, 20000);
  file.done_with(0, static_cast<size_t>(-1));
  file.done_with(200000, 1);
  EXPECT_EQ(text_of(file), text);
}

TEST(MappedFile, AnEmptyFileIsAnEmptySpan) {
  TempFolder folder;
  std::ofstream(folder / "x").close();
  EXPECT_TRUE(MappedFile(folder / "x").bytes().empty());
}

TEST(MappedFile, RefusesWhatIsNotARegularFile) {
  TempFolder folder;
  EXPECT_THROW(MappedFile(folder / "none"), IoError);
  EXPECT_THROW(MappedFile(folder.path()), IoError);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(MappedFile(folder / "pipe"), IoError) << "must not wait for a writer";
}

}  // namespace
}  // namespace headrace::os
