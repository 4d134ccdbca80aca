// libFuzzer target: the bytes of a data file in every form. The first byte chooses form, packing and policies, the rest
// is the file. Only the family of errors may come out; what is accepted must be consistent.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/base/errors.h"
#include "headrace/data/corpus_builder.h"
#include "headrace/data/order.h"
#include "headrace/data/readers.h"
#include "headrace/data/split.h"
#include "tests/data/toy.h"
#include "tests/fuzz/expect.h"

namespace {

using namespace headrace;
using namespace headrace::data;

constexpr std::array<const char*, 9> kNames = {"a.jsonl",     "a.txt",     "a.bin",      "a.jsonl.gz", "a.txt.gz",
                                               "a.jsonl.zst", "a.bin.zst", "form.jsonl", "a.txt.zst"};

void check_corpus(const Corpus& corpus, Layout layout) {
  HEADRACE_FUZZ_EXPECT(corpus.coverage().documents == static_cast<int64_t>(corpus.documents().size()));
  OrderConfig order;
  order.max_length = corpus.coverage().tokens > 0 ? 64 : 2;
  order.layout = layout;
  const auto pieces = all_of(corpus);
  check_order(corpus, pieces, order);
  const EpochPlan plan = plan_epoch(corpus, pieces, order, 1);
  const MicroBatch batch = make_micro_batch(corpus, plan.pieces, Layout::documents);
  HEADRACE_FUZZ_EXPECT(batch.trained_tokens == corpus.coverage().trained_tokens);
  HEADRACE_FUZZ_EXPECT(batch.document_starts.size() == batch.sample_indices.size() + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size < 2) return 0;
  const std::string name = kNames[bytes[0] % kNames.size()];
  CorpusConfig config;
  config.files = {name};
  config.max_length = 64;
  config.max_line_bytes = 1 << 16;
  config.skip_bad_lines = (bytes[1] & 1) != 0;
  config.loss_on = (bytes[1] & 2) != 0 ? LossOn::all : LossOn::assistant;
  config.text_documents = static_cast<TextDocuments>((bytes[1] >> 2) % 3);
  config.over_long = static_cast<OverLong>((bytes[1] >> 4) % 3);
  if (name == "form.jsonl") config.format = static_cast<Format>(1 + bytes[1] % 8);
  const Codec codec = toy_codec((bytes[1] & 128) == 0);
  const std::string_view file(reinterpret_cast<const char*>(bytes) + 2, size - 2);
  try {
    const OnProgress no_progress;
    CorpusBuilder builder(config, codec, no_progress, 0);
    read_file(name, bytes_in_memory(file, name), builder);
    check_corpus(*builder.finish(), (bytes[1] & 64) != 0 ? Layout::packed : Layout::documents);
  } catch (const DataError&) {
  }
  return 0;
}
