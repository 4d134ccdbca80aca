// Any bytes as a tokenizer.json (up to the first zero byte) and, after it, as a text to encode. What is accepted must
// encode every valid text, name bytes within it, and stream what it decodes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/tokenizer/tokenizer.h"
#include "headrace/tokenizer/utf8.h"
#include "tests/fuzz/expect.h"

namespace {

using headrace::tokenizer::StreamDecoder;
using headrace::tokenizer::Tokenizer;

void try_text(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  Tokenizer::Encoding encoding;
  try {
    tokenizer.encode(text, ids);
    encoding = tokenizer.encode_with_offsets(text);
  } catch (const headrace::DataError&) {
    return;  // not UTF-8, or the match limit of a hostile regex
  }
  HEADRACE_FUZZ_EXPECT(headrace::tokenizer::first_invalid_utf8(text) == text.size());
  HEADRACE_FUZZ_EXPECT(encoding.ids == ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    HEADRACE_FUZZ_EXPECT(ids[i] >= 0 && ids[i] < tokenizer.vocabulary_size());
    HEADRACE_FUZZ_EXPECT(encoding.begins[i] <= encoding.ends[i] && encoding.ends[i] <= text.size());
  }
  StreamDecoder stream(tokenizer, false);
  std::string streamed;
  for (const int32_t id : ids) streamed += stream.push(id);
  streamed += stream.finish();
  HEADRACE_FUZZ_EXPECT(streamed == tokenizer.decode(ids, false));
  HEADRACE_FUZZ_EXPECT(headrace::tokenizer::first_invalid_utf8(streamed) == streamed.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t zero = std::min(all.find('\0'), all.size());
  const std::string_view text = all.substr(std::min(zero + 1, all.size()));
  try {
    const Tokenizer tokenizer = Tokenizer::from_json(all.substr(0, zero), "fuzz");
    try_text(tokenizer, text);
    try_text(tokenizer, " The e\xCC\x81 \xE4\xB8\x96\xF0\x9F\x98\x80 ab  1234\r\n'LL <s> \xE2\x96\x81word");
  } catch (const headrace::DataError&) {
  }
  return 0;
}
