#include "headrace/model/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/errors.h"
#include "headrace/config/model_shape.h"
#include "headrace/tensor/torch.h"

namespace headrace::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> values_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<int64_t>(), tensor.const_data_ptr<int64_t>() + tensor.numel()};
}

Batch example() {
  const std::vector<std::vector<int64_t>> ids = {{1, 2, 3}, {}, {4, 5, 6, 7, 8}};
  const std::vector<std::vector<int64_t>> labels = {{1, 2, 3}, {}, {kMasked, kMasked, 6, kMasked, 8}};
  return pack(ids, labels);
}

config::ModelShape shape() {
  config::ModelShape shape;
  shape.vocab_size = 9;
  shape.max_positions = 5;
  return shape;
}

std::string error_of(const Batch& batch) {
  try {
    check(batch, shape());
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(Batch, PacksWithShiftedTargetsAndRestartedPositions) {
  const Batch batch = example();
  EXPECT_THAT(values_of(batch.ids_N), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(values_of(batch.positions_N), ElementsAre(0, 1, 2, 0, 1, 2, 3, 4));
  EXPECT_THAT(values_of(batch.targets_N), ElementsAre(2, 3, kMasked, kMasked, 6, kMasked, 8, kMasked));
  EXPECT_THAT(batch.document_starts, ElementsAre(0, 3, 8)) << "the empty document is gone";
  EXPECT_EQ(batch.num_trained_tokens(), 4);
  EXPECT_EQ(error_of(batch), "");
}

TEST(Batch, RefusesDocumentsWithoutTheirLabels) {
  const std::vector<std::vector<int64_t>> ids = {{1, 2}}, labels = {{1}};
  EXPECT_THROW(pack(ids, labels), InternalError);
}

TEST(Batch, CheckNamesWhatDoesNotFitTheModel) {
  Batch batch = example();
  batch.ids_N[3] = 9;
  EXPECT_THAT(error_of(batch), HasSubstr("token 9 of row 3: 0 to 8"));
  batch = example();
  batch.positions_N[7] = 5;
  EXPECT_THAT(error_of(batch), HasSubstr("position 5 of row 7"));
  batch = example();
  batch.targets_N[0] = -1;
  EXPECT_THAT(error_of(batch), HasSubstr("target -1 of row 0"));
  batch = example();
  batch.document_starts = {0, 3, 3, 8};
  EXPECT_THAT(error_of(batch), HasSubstr("document 1 starts at row 3"));
  batch.document_starts = {0, 3, 9};
  EXPECT_THAT(error_of(batch), HasSubstr("9 rows"));
  batch.document_starts = {};
  EXPECT_THAT(error_of(batch), HasSubstr("at least one document"));
}

}  // namespace
}  // namespace headrace::model
