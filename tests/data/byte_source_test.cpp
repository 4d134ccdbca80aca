#include "headrace/data/byte_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/data/pack.h"
#include "tests/data/toy.h"

namespace headrace::data {
namespace {

using testing::HasSubstr;

std::string read_all(ByteSource& bytes, size_t block_bytes) {
  std::string all, block(block_bytes, '\0');
  while (const size_t got = bytes.read(block)) all.append(block, 0, got);
  return all;
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 60000; ++i) text += "line " + std::to_string(i * 7919 % 10007) + "\n";
  return text;
}

TEST(ByteSource, UnpacksByName) {
  const DataFolder folder;
  const std::string text = long_text();
  for (const std::string& path :
       {folder.write("a.txt", text), folder.write("a.txt.gz", gzip(text)), folder.write("a.txt.zst", zstd(text))}) {
    for (const size_t block : {size_t{1} << 16, size_t{1000003}, size_t{17}}) {
      EXPECT_EQ(read_all(*open_bytes(path), block), text) << path << " in blocks of " << block;
    }
  }
}

TEST(ByteSource, ReadsPackedStreamsOneAfterAnother) {
  for (const auto& [name, pack] : {std::pair{"a.gz", &gzip}, std::pair{"a.zst", &zstd}}) {
    const std::string two = pack("one\n") + pack("") + pack("two\n");
    EXPECT_EQ(read_all(*bytes_in_memory(two, name), 100), "one\ntwo\n") << name;
    EXPECT_EQ(read_all(*bytes_in_memory("", name), 100), "") << name;
  }
}

TEST(ByteSource, NamesPackedDataThatEndsEarlyOrIsDamaged) {
  const std::string text = long_text();
  for (const auto& [name, pack] : {std::pair{"a.gz", &gzip}, std::pair{"a.zst", &zstd}}) {
    const std::string packed = pack(text);
    for (const size_t length : {size_t{5}, packed.size() / 2, packed.size() - 1}) {
      const std::string cut = packed.substr(0, length);
      EXPECT_THAT(error_of<DataError>([&] { read_all(*bytes_in_memory(cut, name), 4096); }), HasSubstr("ends early"))
          << name << " cut to " << length;
    }
    EXPECT_THAT(error_of<DataError>([&] { read_all(*bytes_in_memory(text, name), 4096); }), HasSubstr(name));
  }
}

TEST(ByteSource, MissingFilesAndFoldersAreTheSystemsErrors) {
  const DataFolder folder;
  EXPECT_THAT(error_of<IoError>([&] { open_bytes(folder.file("none.jsonl")); }), HasSubstr("none.jsonl"));
  EXPECT_THAT(error_of<IoError>([&] { open_bytes(folder.file("")); }), HasSubstr("directory"));
}

// Read to its middle, then changed by somebody else.
TEST(ByteSource, AFileThatChangesWhileItIsReadIsRefused) {
  const DataFolder folder;
  const std::string text = long_text(), path = folder.write("a.txt", text);
  const std::string size = std::to_string(text.size());
  const auto error_after = [&](const std::function<void()>& change) {
    folder.write("a.txt", text);
    return error_of<DataError>([&] {
      const auto bytes = open_bytes(path);
      std::string half(text.size() / 2, '\0');
      bytes->read(half);
      change();
      read_all(*bytes, 4096);
    });
  };
  EXPECT_THAT(
      error_after([&] { std::filesystem::resize_file(path, text.size() / 3); }),
      AllOf(HasSubstr(path), HasSubstr("it had " + size + " bytes and now has " + std::to_string(text.size() / 3))));
  EXPECT_THAT(error_after([&] { std::ofstream(path, std::ios::app) << "one more\n"; }),
              HasSubstr("now has " + std::to_string(text.size() + 9)));
  const auto write_in_place = [&] {
    std::fstream(path, std::ios::in | std::ios::out) << "LINE";
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  };
  EXPECT_THAT(error_after(write_in_place), HasSubstr("was changed while it was read"));
  EXPECT_EQ(error_after([&] { std::filesystem::remove(path); }), "") << "who holds it open still reads the old bytes";
}

}  // namespace
}  // namespace headrace::data
