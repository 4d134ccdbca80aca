#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/data/corpus.h"
#include "tests/data/pack.h"
#include "tests/data/toy.h"

namespace headrace::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string bytes_of(const std::vector<uint32_t>& ids, int width) {
  std::string bytes;
  for (const uint32_t id : ids) {
    for (int i = 0; i < width; ++i) bytes += static_cast<char>(id >> (8 * i));
  }
  return bytes;
}

std::shared_ptr<const Corpus> load(const std::string& path, Format format = Format::automatic,
                                   int64_t vocabulary = 259) {
  CorpusConfig config;
  config.files = {path};
  config.format = format;
  Codec codec = toy_codec();
  codec.vocabulary = vocabulary;
  return load_corpus(config, codec);
}

const std::vector<uint32_t> kIds = {1, 2, 3, kEndOfText, 4, 5, kEndOfText, 6, 7, 8};

TEST(TokenFile, DocumentsEndWithTheEndOfText) {
  const DataFolder folder;
  const auto corpus = load(folder.write("a.bin", bytes_of(kIds, 2)));
  ASSERT_EQ(corpus->documents().size(), 3u);
  EXPECT_EQ(corpus->sample(0).ids, (std::vector<int32_t>{1, 2, 3, kEndOfText}));
  EXPECT_EQ(corpus->sample(0).trained, (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(corpus->sample(2).ids, (std::vector<int32_t>{6, 7, 8}));
  EXPECT_EQ(corpus->documents()[1].line, 4) << "the index of the document's first token";
  for (const auto& document : corpus->documents()) EXPECT_FALSE(document.whole_file);
}

TEST(TokenFile, AFileWithoutInnerEndIsOneDocument) {
  const DataFolder folder;
  for (const auto& ids : {std::vector<uint32_t>{1, 2, 3}, std::vector<uint32_t>{1, 2, kEndOfText}}) {
    const auto corpus = load(folder.write("a.bin", bytes_of(ids, 2)));
    ASSERT_EQ(corpus->documents().size(), 1u);
    EXPECT_TRUE(corpus->documents()[0].whole_file);
    EXPECT_EQ(corpus->documents()[0].length(), 3);
  }
}

TEST(TokenFile, TwoOrFourBytesAnId) {
  const DataFolder folder;
  std::vector<uint32_t> ids;
  for (int i = 0; i < 200000; ++i) ids.push_back(static_cast<uint32_t>(i % 250 + 1));
  const auto two = load(folder.write("two.bin", bytes_of(ids, 2)));
  const std::string four = folder.write("four.bin", bytes_of(ids, 4));
  EXPECT_EQ(load(four)->fingerprint(), two->fingerprint()) << "recognised by its zeros";
  EXPECT_EQ(load(four, Format::bin32)->fingerprint(), two->fingerprint());
  EXPECT_EQ(load(four, Format::automatic, 100000)->fingerprint(), two->fingerprint()) << "the vocabulary needs it";
  EXPECT_EQ(load(folder.write("two.bin.gz", gzip(bytes_of(ids, 2))))->fingerprint(), two->fingerprint());
}

TEST(TokenFile, NamesIdsOutsideTheVocabulary) {
  const DataFolder folder;
  EXPECT_THAT(error_of<DataError>([&] {
                load(folder.write("a.bin", bytes_of({1, 2, 300, 4}, 2)));
              }),
              AllOf(HasSubstr("a.bin"), HasSubstr("id 300 at byte 4"), HasSubstr("259"), HasSubstr("bin32")));
  EXPECT_THAT(error_of<DataError>([&] {
                load(folder.write("b.bin", bytes_of({1, 0xFFFFFFFF}, 4)), Format::bin32);
              }),
              HasSubstr("id 4294967295 at byte 4"));
}

TEST(TokenFile, NamesALengthThatIsNoWholeNumberOfIds) {
  const DataFolder folder;
  EXPECT_THAT(error_of<DataError>([&] { load(folder.write("a.bin", bytes_of(kIds, 2) + "x")); }),
              AllOf(HasSubstr("a.bin"), HasSubstr("no multiple of 2")));
  EXPECT_THAT(error_of<DataError>([&] { load(folder.write("b.bin", bytes_of(kIds, 4) + "xy"), Format::bin32); }),
              HasSubstr("no multiple of 4"));
}

}  // namespace
}  // namespace headrace::data
