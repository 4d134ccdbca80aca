#include "headrace/os/input_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "tests/support/temp_folder.h"

namespace headrace::os {
namespace {

namespace fs = std::filesystem;

int error_of(const fs::path& path) {
  try {
    const InputFile file(path);
  } catch (const IoError& error) {
    return error.error_number();
  }
  return 0;
}

TEST(InputFile, GivesAllBytesInPieces) {
  TempFolder folder;
  std::string text(100'000, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 + i / 256);
  std::ofstream(folder / "x", std::ios::binary) << text;
  InputFile file(folder / "x");
  EXPECT_EQ(file.size_bytes(), 100'000);
  std::string read;
  std::vector<std::byte> piece(33'333);
  while (const size_t got = file.read(piece)) read.append(reinterpret_cast<const char*>(piece.data()), got);
  EXPECT_TRUE(read == text);
  EXPECT_EQ(file.read(piece), 0U);
}

TEST(InputFile, RefusesWhatIsNotARegularFile) {
  TempFolder folder;
  EXPECT_EQ(error_of(folder / "none"), ENOENT);
  EXPECT_EQ(error_of(folder.path()), EINVAL);
  std::ofstream(folder / "x") << "x";
  fs::create_symlink("x", folder / "link");
  EXPECT_EQ(error_of(folder / "link"), ELOOP);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of(folder / "pipe"), EINVAL) << "must not wait for a writer";
}

}  // namespace
}  // namespace headrace::os
