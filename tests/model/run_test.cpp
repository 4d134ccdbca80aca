#include "headrace/model/run.h"

#include <gtest/gtest.h>

#include "headrace/base/errors.h"
#include "tests/model/golden_case.h"

namespace headrace::model {
namespace {

class Decode : public ::testing::TestWithParam<const char*> {};

// The longest document, past every golden's sliding window.
Batch longest(const GoldenCase& c) { return documents_of(c.batch, 1, 2); }

TEST_P(Decode, TokenByTokenEqualsTheFullForward) {
  const GoldenCase c(GetParam());
  const Batch document = longest(c);
  const at::Tensor expected = all_logits(c, document);
  const std::span<const int64_t> ids(document.ids_N.const_data_ptr<int64_t>(), document.num_tokens());
  constexpr size_t kPrompt = 4;
  Decoder decoder(c.model, c.buffers, document.num_tokens());
  EXPECT_LT((decoder.append(ids.first(kPrompt)) - expected[kPrompt - 1]).abs().max().item<double>(), 1e-5);
  for (size_t i = kPrompt; i < ids.size(); ++i) {
    const at::Tensor logits = decoder.append(ids.subspan(i, 1));
    ASSERT_LT((logits - expected[static_cast<int64_t>(i)]).abs().max().item<double>(), 1e-5) << "token " << i;
  }
  EXPECT_EQ(decoder.length(), document.num_tokens());
}

TEST_P(Decode, SeveralTokensAfterAPromptEqualTheFullForward) {
  const GoldenCase c(GetParam());
  const Batch document = longest(c);
  const at::Tensor expected = all_logits(c, document);
  const std::span<const int64_t> ids(document.ids_N.const_data_ptr<int64_t>(), document.num_tokens());
  Decoder decoder(c.model, c.buffers, document.num_tokens());
  decoder.append(ids.first(3));
  const at::Tensor logits = decoder.append(ids.subspan(3));
  EXPECT_LT((logits - expected[document.num_tokens() - 1]).abs().max().item<double>(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Families, Decode, ::testing::ValuesIn(kFamilies),
                         [](const auto& param) { return std::string(param.param); });

TEST(DecoderLimits, AreEnforced) {
  const GoldenCase c("gpt2");
  EXPECT_THROW(Decoder(c.model, c.buffers, c.model.shape().max_positions + 1), DataError);
  EXPECT_THROW(Decoder(c.model, c.buffers, 0), DataError);
  Decoder decoder(c.model, c.buffers, 3);
  const std::vector<int64_t> two = {1, 2}, foreign = {c.model.shape().vocab_size};
  EXPECT_THROW(decoder.append(foreign), DataError);
  EXPECT_THROW(decoder.append({}), DataError);
  decoder.append(two);
  EXPECT_THROW(decoder.append(two), DataError);
}

}  // namespace
}  // namespace headrace::model
