#include "headrace/data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/pack.h"
#include "tests/data/toy.h"

namespace headrace::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kChat =
    R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "answer"}]})";
constexpr const char* kNoAnswer = R"({"messages": [{"role": "user", "content": "q"}]})";

std::shared_ptr<const Corpus> load(const std::vector<std::string>& files, CorpusConfig config = {}) {
  config.files = files;
  return load_corpus(config, toy_codec());
}

std::vector<std::string> spell_documents(const Corpus& corpus) {
  std::vector<std::string> all;
  for (size_t i = 0; i < corpus.documents().size(); ++i) {
    const Sample sample = corpus.sample(static_cast<int64_t>(i));
    all.push_back(spell(sample.ids, std::vector<uint8_t>(sample.ids.size(), 1)));
  }
  return all;
}

std::string load_error(const std::vector<std::string>& files, CorpusConfig config = {}) {
  return error_of<Error>([&] { load(files, config); });
}

TEST(Corpus, PackedFilesGiveTheSameDataAsPlainOnes) {
  const DataFolder folder;
  const std::string text = std::string(kChat) + "\n" + kChat + "\n";
  const auto plain = load({folder.write("a.jsonl", text)});
  EXPECT_EQ(plain->documents().size(), 2u);
  EXPECT_EQ(load({folder.write("a.jsonl.gz", gzip(text))})->fingerprint(), plain->fingerprint());
  EXPECT_EQ(load({folder.write("a.jsonl.zst", zstd(text))})->fingerprint(), plain->fingerprint());
  EXPECT_EQ(load({folder.write("b.txt.zst", zstd("some text"))})->fingerprint(),
            load({folder.write("b.txt", "some text")})->fingerprint());
}

TEST(Corpus, LineEndsByteOrderMarkAndBlankLinesChangeNothing) {
  const DataFolder folder;
  const auto plain = load({folder.write("a.jsonl", std::string(kChat) + "\n" + kChat + "\n")});
  const auto odd = load({folder.write("b.jsonl", std::string("\xEF\xBB\xBF") + kChat + "\r\n\r\n  \r\n" + kChat)});
  EXPECT_EQ(odd->fingerprint(), plain->fingerprint());
  EXPECT_EQ(odd->documents()[1].line, 4);
  EXPECT_THAT(odd->where(1), testing::EndsWith("b.jsonl:4"));
}

TEST(Corpus, SeveralFilesOfSeveralForms) {
  const DataFolder folder;
  const auto corpus =
      load({folder.write("a.jsonl", kChat), folder.write("b.jsonl", R"({"text": "abc"})"),
            folder.write("c.txt", "hello\nyou\n"), folder.write("d.json", R"({"prompt":"p","completion":"c"})")});
  EXPECT_THAT(spell_documents(*corpus), ElementsAre("[S]user\nq[E]\n[S]assistant\nanswer[E]\n", "abc[T]",
                                                    "hello\nyou[T]", "[S]user\np[E]\n[S]assistant\nc[E]\n"));
  EXPECT_EQ(corpus->coverage().files, 4);
  EXPECT_EQ(corpus->coverage().trained_tokens, 7 + 3 + 9 + 2);
  EXPECT_EQ(corpus->documents()[2].file, 2);
}

TEST(Corpus, PlainTextByFileParagraphOrLine) {
  const DataFolder folder;
  const std::string path = folder.write("a.txt", "one\ntwo\n\n\n three\n");
  CorpusConfig config;
  EXPECT_THAT(spell_documents(*load({path}, config)), ElementsAre("one\ntwo\n\n\n three[T]"));
  EXPECT_TRUE(load({path}, config)->documents()[0].whole_file);
  config.text_documents = TextDocuments::paragraphs;
  const auto paragraphs = load({path}, config);
  EXPECT_THAT(spell_documents(*paragraphs), ElementsAre("one\ntwo[T]", " three[T]"));
  EXPECT_EQ(paragraphs->documents()[1].line, 5);
  config.text_documents = TextDocuments::lines;
  config.append_end_of_text = false;
  EXPECT_THAT(spell_documents(*load({path}, config)), ElementsAre("one", "two", " three"));
}

TEST(Corpus, ALongTextIsTheSameReadInParts) {
  const DataFolder folder;
  std::string text;
  for (int i = 0; i < 500000; ++i) text += "word" + std::to_string(i % 977) + (i % 13 == 0 ? "\n\n  indented\n" : "\n");
  text += "end";
  const auto corpus = load({folder.write("a.txt", text)});
  ASSERT_GT(text.size(), size_t{3} << 20);
  EXPECT_EQ(spell_documents(*corpus)[0], text + "[T]");
}

TEST(Corpus, LongDocumentsAreCutLeftOutOrRefused) {
  const DataFolder folder;
  const std::string path =
      folder.write("a.jsonl", std::string(kChat) + "\n" + R"({"text": "0123456789012345678901234567890123456789"})");
  CorpusConfig config;
  config.max_length = 24;
  EXPECT_THAT(load_error({path}, config), AllOf(HasSubstr("a.jsonl:2"), HasSubstr("this one is text")));
  const std::string chat = folder.write("b.jsonl", kChat),
                    text = folder.write("c.jsonl", R"({"text": "0123456789012345678901234567890123456789"})");
  const auto cut = load({chat, text}, config);
  EXPECT_THAT(spell_documents(*cut),
              ElementsAre("[S]user\nq[E]\n[S]assistant\nansw", "0123456789012345678901234567890123456789[T]"))
      << "text is read in pieces later and loses nothing";
  EXPECT_EQ(cut->coverage().truncated, 1);
  EXPECT_THAT(cut->coverage().warnings, ElementsAre(AllOf(HasSubstr("b.jsonl:1"), HasSubstr("28"), HasSubstr("24"))));
  config.over_long = OverLong::skip;
  EXPECT_EQ(load({chat, text}, config)->coverage().too_long, 1);
  config.over_long = OverLong::error;
  EXPECT_THAT(load_error({chat, text}, config),
              AllOf(HasSubstr("b.jsonl:1"), HasSubstr("28"), HasSubstr("24"), HasSubstr("--max-length")));
}

TEST(Corpus, RecordsWithNothingToLearnAreNamedAndLeftOut) {
  const DataFolder folder;
  std::string lines = std::string(kChat) + "\n";
  for (int i = 0; i < 20; ++i) lines += std::string(kNoAnswer) + "\n";
  const auto corpus = load({folder.write("a.jsonl", lines)});
  EXPECT_EQ(corpus->coverage().untrained, 20);
  EXPECT_EQ(corpus->coverage().documents, 1);
  ASSERT_EQ(corpus->coverage().warnings.size(), 6u) << "five are named, then the count";
  EXPECT_THAT(corpus->coverage().warnings[0], HasSubstr("a.jsonl:2: no token to learn"));
  EXPECT_THAT(corpus->coverage().warnings[5], HasSubstr("20 documents without"));
  CorpusConfig config;
  config.max_length = 20;  // cut before the answer begins
  EXPECT_THAT(load_error({folder.write("b.jsonl", kChat)}, config), HasSubstr("nothing to learn"));
}

TEST(Corpus, BadLinesAreNamedOrCounted) {
  const DataFolder folder;
  const std::string path =
      folder.write("a.jsonl", std::string(kChat) + "\n{\"messages\n" + kChat + "\n{\"text\": \"other form\"}\n" +
                                  R"({"messages": [{"role": "pilot", "content": "q"}]})");
  EXPECT_THAT(load_error({path}),
              AllOf(StartsWith("[data.read]"), HasSubstr("a.jsonl:2: "), HasSubstr("not valid JSON")));
  CorpusConfig config;
  config.skip_bad_lines = true;
  const auto corpus = load({path}, config);
  EXPECT_EQ(corpus->coverage().documents, 2);
  EXPECT_EQ(corpus->coverage().bad_lines, 3);
  EXPECT_THAT(corpus->coverage().warnings,
              ElementsAre(HasSubstr("a.jsonl:2"), AllOf(HasSubstr("a.jsonl:4"), HasSubstr("One file holds one form")),
                          AllOf(HasSubstr("a.jsonl:5"), HasSubstr("pilot"))));
}

TEST(Corpus, AHugeLineIsABadLine) {
  const DataFolder folder;
  const std::string path =
      folder.write("a.jsonl", "{\"text\": \"" + std::string(5000, 'x') + "\"}\n{\"text\": \"ok\"}\n");
  CorpusConfig config;
  config.max_line_bytes = 1000;
  EXPECT_THAT(load_error({path}, config), AllOf(HasSubstr("a.jsonl:1"), HasSubstr("1000 bytes")));
  config.skip_bad_lines = true;
  EXPECT_EQ(load({path}, config)->coverage().documents, 1);
}

TEST(Corpus, TextThatIsNotUtf8IsNamed) {
  const DataFolder folder;
  const std::string path = folder.write("a.txt", "good\nbad \xFF\nalso good\n");
  EXPECT_THAT(load_error({path}), AllOf(HasSubstr("a.txt:2"), HasSubstr("UTF-8")));
  CorpusConfig config;
  config.skip_bad_lines = true;
  EXPECT_THAT(spell_documents(*load({path}, config)), ElementsAre("good\nalso good[T]"));
}

TEST(Corpus, NothingToReadIsAnError) {
  const DataFolder folder;
  EXPECT_THAT(load_error({}), HasSubstr("--data"));
  for (const char* name : {"a.jsonl", "a.txt", "a.bin"}) {
    EXPECT_THAT(load_error({folder.write(name, "")}), AllOf(HasSubstr("nothing to learn"), HasSubstr(name)));
  }
  EXPECT_THAT(load_error({folder.write("a.csv", "x")}), HasSubstr("--data-format"));
  EXPECT_THAT(load_error({folder.file("gone.jsonl")}), HasSubstr("gone.jsonl"));
  CorpusConfig config;
  config.max_length = 1;
  EXPECT_THAT(load_error({folder.write("b.txt", "text")}, config), HasSubstr("max_length is 1"));
}

TEST(Corpus, FormatByNameOverridesTheEnding) {
  const DataFolder folder;
  CorpusConfig config;
  config.format = parse_format("text");
  EXPECT_EQ(load({folder.write("a.data", R"({"text": "abc", "messages": []})")}, config)->documents().size(), 1u);
  EXPECT_THAT(load_error({folder.write("b.data", kChat)}, config), HasSubstr("form text"));
  EXPECT_THAT(error_of<ConfigError>([] { parse_format("csv"); }), AllOf(HasSubstr("csv"), HasSubstr("sharegpt")));
}

TEST(Corpus, FingerprintTellsChangedData) {
  const DataFolder folder;
  const auto one = load({folder.write("a.jsonl", R"({"text": "abc"})")});
  EXPECT_EQ(one->fingerprint().size(), 32u);
  EXPECT_EQ(load({folder.write("other.jsonl", R"({"text": "abc"})")})->fingerprint(), one->fingerprint());
  EXPECT_NE(load({folder.write("b.jsonl", R"({"text": "abd"})")})->fingerprint(), one->fingerprint());
}

TEST(Corpus, ProgressIsReportedAndMayStopLoading) {
  const DataFolder folder;
  std::string lines;
  for (int i = 0; i < 60000; ++i) lines += "{\"text\": \"a line of fifty bytes or so, a line of text\"}\n";
  CorpusConfig config;
  config.files = {folder.write("a.jsonl", lines)};
  std::vector<Progress> seen;
  load_corpus(config, toy_codec(), [&](const Progress& progress) { seen.push_back(progress); });
  ASSERT_GE(seen.size(), 2u);
  EXPECT_EQ(seen.back().total_bytes, static_cast<int64_t>(lines.size()));
  EXPECT_LE(seen.back().bytes, seen.back().total_bytes);
  EXPECT_GT(seen.back().documents, 0);
  EXPECT_THROW(load_corpus(config, toy_codec(), [](const Progress&) { throw RunError("test", "stop"); }), RunError);
}

TEST(Corpus, MemoryIsAFewBytesAToken) {
  const DataFolder folder;
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += "{\"text\": \"" + std::string(1000, 'x') + "\"}\n";
  const auto corpus = load({folder.write("a.jsonl", lines)});
  EXPECT_EQ(corpus->coverage().tokens, 2000 * 1001);
  EXPECT_LT(corpus->coverage().memory_bytes, 5 * corpus->coverage().tokens + (1 << 20));
}

}  // namespace
}  // namespace headrace::data
