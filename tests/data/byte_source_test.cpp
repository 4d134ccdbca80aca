#include "headrace/data/byte_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace headrace::data
