#include "headrace/model/block.h"

#include <gtest/gtest.h>

#include "headrace/base/errors.h"
#include "tests/model/golden_case.h"

namespace headrace::model {
namespace {

class Block : public ::testing::TestWithParam<const char*> {};

void expect_same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << "block " << i;
}

void expect_close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) EXPECT_LT(distance(a[i], b[i]), 1e-5) << "block " << i;
}

TEST_P(Block, CheckpointingIsBitwiseEqual) {
  GoldenCase c(GetParam());
  const double kept = train_pass(c.model, c.buffers, c.batch, 0.5F, Keep::kAll).loss_sum;
  const std::vector<at::Tensor> gradients = copy_gradients(c);
  zero_gradients(c);
  EXPECT_EQ(train_pass(c.model, c.buffers, c.batch, 0.5F, Keep::kInput).loss_sum, kept);
  expect_same_bits(copy_gradients(c), gradients);
}

TEST_P(Block, BackwardAddsToWhatIsThere) {
  GoldenCase c(GetParam());
  train_pass(c.model, c.buffers, c.batch, 1.0F, Keep::kAll);
  std::vector<at::Tensor> doubled = copy_gradients(c);
  for (at::Tensor& gradient : doubled) gradient.mul_(2);
  train_pass(c.model, c.buffers, c.batch, 1.0F, Keep::kAll);
  expect_close(copy_gradients(c), doubled);
}

TEST_P(Block, EveryParameterReceivesAGradient) {
  GoldenCase c(GetParam());
  train_pass(c.model, c.buffers, c.batch, 1.0F, Keep::kAll);
  for (int64_t i = 0; i < c.model.num_blocks(); ++i) {
    for (const ParameterSpec& parameter : c.model.blocks()[i].parameters) {
      const at::Tensor gradient = tensor::view_of(c.buffers[i].gradients, parameter.offset, parameter.shape);
      EXPECT_GT(gradient.abs().max().item<float>(), 0.0F) << parameter.name;
    }
  }
}

TEST_P(Block, GapsBetweenParametersStayZero) {
  GoldenCase c(GetParam());
  train_pass(c.model, c.buffers, c.batch, 1.0F, Keep::kAll);
  for (int64_t i = 0; i < c.model.num_blocks(); ++i) {
    for (const ParameterSpec& parameter : c.model.blocks()[i].parameters) {
      EXPECT_EQ(parameter.offset % 16, 0);
      tensor::view_of(c.buffers[i].gradients, parameter.offset, parameter.shape).zero_();
    }
    EXPECT_EQ(c.buffers[i].gradients.abs().sum().item<float>(), 0.0F) << c.model.blocks()[i].name;
  }
}

TEST_P(Block, PackedDocumentsEqualSeparateOnes) {
  GoldenCase c(GetParam());
  const at::Tensor packed = all_logits(c, c.batch);
  const double packed_loss = train_pass(c.model, c.buffers, c.batch, 1.0F, Keep::kAll).loss_sum;
  const std::vector<at::Tensor> packed_gradients = copy_gradients(c);
  zero_gradients(c);
  double separate_loss = 0;
  for (int64_t d = 0; d < c.batch.num_documents(); ++d) {
    const Batch document = documents_of(c.batch, d, d + 1);
    const at::Tensor rows = packed.slice(0, c.batch.document_starts[d], c.batch.document_starts[d + 1]);
    EXPECT_LT((all_logits(c, document) - rows).abs().max().item<double>(), 1e-5) << "document " << d;
    separate_loss += train_pass(c.model, c.buffers, document, 1.0F, Keep::kAll).loss_sum;
  }
  EXPECT_NEAR(packed_loss, separate_loss, 1e-6 * separate_loss);
  expect_close(copy_gradients(c), packed_gradients);
}

TEST_P(Block, OneDocumentNeverSeesAnother) {
  GoldenCase c(GetParam());
  const int64_t end = c.batch.document_starts[1];
  const at::Tensor before = all_logits(c, c.batch).slice(0, end).clone();
  c.batch.ids_N = c.batch.ids_N.clone();
  c.batch.ids_N.slice(0, 0, end).fill_(11);
  EXPECT_TRUE(at::equal(all_logits(c, c.batch).slice(0, end), before)) << "bitwise, all documents behind the first";
}

// Padding is a document of its own with masked targets, before the text or behind it.
TEST_P(Block, LeftPaddingEqualsRightPadding) {
  const GoldenCase c(GetParam());
  const std::vector<int64_t> text = {3, 14, 15, 92, 6, 5}, padding(5, 2), masked(5, kMasked);
  const std::vector<std::vector<int64_t>> left_ids = {padding, text}, left_labels = {masked, text};
  const std::vector<std::vector<int64_t>> right_ids = {text, padding}, right_labels = {text, masked};
  const Batch left = pack(left_ids, left_labels), right = pack(right_ids, right_labels);
  EXPECT_EQ(left.num_trained_tokens(), 5);
  const at::Tensor left_logits = all_logits(c, left).slice(0, 5), right_logits = all_logits(c, right).slice(0, 0, 6);
  EXPECT_LT((left_logits - right_logits).abs().max().item<double>(), 1e-5);
  const double left_loss = loss_all(c.model, c.buffers, left).loss_sum;
  EXPECT_NEAR(left_loss, loss_all(c.model, c.buffers, right).loss_sum, 1e-6 * left_loss);
}

// Micro-batches of different sizes, each weighted by the tokens of the whole step.
TEST_P(Block, MicroBatchesWeighTokensNotBatches) {
  GoldenCase c(GetParam());
  const float scale = 1.0F / static_cast<float>(c.batch.num_trained_tokens());
  const LossResult whole = train_pass(c.model, c.buffers, c.batch, scale, Keep::kAll);
  const std::vector<at::Tensor> gradients = copy_gradients(c);
  zero_gradients(c);
  const LossResult a = train_pass(c.model, c.buffers, documents_of(c.batch, 0, 1), scale, Keep::kAll);
  const LossResult b = train_pass(c.model, c.buffers, documents_of(c.batch, 1, 3), scale, Keep::kAll);
  EXPECT_NE(a.trained_tokens, b.trained_tokens);
  EXPECT_EQ(a.trained_tokens + b.trained_tokens, whole.trained_tokens);
  EXPECT_NEAR(a.loss_sum + b.loss_sum, whole.loss_sum, 1e-6 * whole.loss_sum);
  expect_close(copy_gradients(c), gradients);
}

TEST_P(Block, AllMaskedGivesZeroWithoutNaN) {
  GoldenCase c(GetParam());
  c.batch.targets_N = at::full_like(c.batch.targets_N, kMasked);
  const LossResult result = train_pass(c.model, c.buffers, c.batch, 1.0F, Keep::kAll);
  EXPECT_EQ(result.loss_sum, 0.0);
  EXPECT_EQ(result.trained_tokens, 0);
  EXPECT_EQ(loss_all(c.model, c.buffers, c.batch).loss_sum, 0.0);
  for (const BlockBuffers& buffers : c.buffers) EXPECT_EQ(buffers.gradients.abs().max().item<float>(), 0.0F);
}

TEST_P(Block, FrozenBlocksPassTheGradientOn) {
  GoldenCase c(GetParam());
  train_pass(c.model, c.buffers, c.batch, 1.0F, Keep::kAll);
  const std::vector<at::Tensor> gradients = copy_gradients(c);
  zero_gradients(c);
  std::vector<BlockBuffers> buffers = c.buffers;
  for (int64_t frozen : {int64_t{0}, int64_t{2}, c.model.head_index()}) buffers[frozen].gradients = at::Tensor();
  train_pass(c.model, buffers, c.batch, 1.0F, Keep::kInput);
  EXPECT_TRUE(at::equal(buffers[1].gradients, gradients[1])) << "a trained layer below frozen ones";
}

INSTANTIATE_TEST_SUITE_P(Families, Block, ::testing::ValuesIn(kFamilies),
                         [](const auto& param) { return std::string(param.param); });

TEST(BlockContract, WeightsMayMoveBetweenForwardAndBackward) {
  GoldenCase c("llama3");
  const BlockTape input = forward_block(c.model, 0, c.buffers[0], {}, c.batch, Keep::kNothing);
  const at::Tensor grad_NC = at::randn_like(input.output_NC);
  std::vector<at::Tensor> results;
  for (bool moves : {false, true}) {
    BlockBuffers buffers{c.buffers[1].weights.clone(), at::zeros_like(c.buffers[1].gradients)};
    BlockTape tape = forward_block(c.model, 1, buffers, input.output_NC, c.batch, Keep::kAll);
    if (moves) {
      const at::Tensor elsewhere = buffers.weights.clone();
      buffers.weights.fill_(std::nanf(""));
      buffers.weights = elsewhere;
    }
    backward_block(c.model, buffers, std::move(tape), grad_NC, c.batch);
    results.push_back(buffers.gradients);
  }
  EXPECT_TRUE(at::equal(results[0], results[1]));
}

TEST(BlockContract, MisuseIsNamed) {
  GoldenCase c("smollm2");
  BlockTape tape = forward_block(c.model, 0, c.buffers[0], {}, c.batch, Keep::kNothing);
  const at::Tensor x_NC = tape.output_NC;
  EXPECT_THROW(backward_block(c.model, c.buffers[0], std::move(tape), x_NC, c.batch), InternalError);
  EXPECT_THROW(forward_block(c.model, c.model.head_index(), c.buffers.back(), x_NC, c.batch, Keep::kAll),
               InternalError);
  const BlockBuffers short_one{c.buffers[1].weights.slice(0, 16), {}};
  EXPECT_THROW(forward_block(c.model, 1, short_one, x_NC, c.batch, Keep::kAll), InternalError);
}

}  // namespace
}  // namespace headrace::model
