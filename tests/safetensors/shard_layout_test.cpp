#include "headrace/safetensors/shard_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/errors.h"
#include "headrace/safetensors/header.h"
#include "tests/safetensors/build_file.h"

namespace headrace::safetensors {
namespace {

using ::testing::ElementsAre;

std::vector<size_t> numbers_of(const ShardLayout& shard) {
  std::vector<size_t> numbers;
  for (const PlacedTensor& placed : shard.tensors) numbers.push_back(placed.number);
  return numbers;
}

// What is promised of each file is what the strict reader finds in it.
TEST(ShardLayout, IsWhatTheReaderFinds) {
  const std::vector<PlannedTensor> plan = {{"byte", DType::kU8, {3}},
                                           {"empty", DType::kF32, {0, 7}},
                                           {"half", DType::kBF16, {5}},
                                           {"whole", DType::kF32, {2, 2}}};
  for (const int64_t max_shard_bytes : {1, 12, 13, 26, 100}) {
    for (const ShardLayout& shard : lay_out_shards(plan, max_shard_bytes, {{"k", "v"}})) {
      const std::string file = shard.head + std::string(static_cast<size_t>(shard.data_bytes), 'x');
      EXPECT_EQ(shard.file_bytes(), static_cast<int64_t>(file.size()));
      const Header header = parse_header(bytes_in(file), "test");
      ASSERT_EQ(header.tensors.size(), shard.tensors.size());
      for (const PlacedTensor& placed : shard.tensors) {
        const auto found = std::find_if(header.tensors.begin(), header.tensors.end(),
                                        [&](const TensorInfo& info) { return info.name == plan[placed.number].name; });
        ASSERT_NE(found, header.tensors.end());
        EXPECT_EQ(found->begin, placed.offset);
        EXPECT_EQ(found->end, placed.offset + placed.length);
        EXPECT_EQ(found->shape, plan[placed.number].shape);
      }
      EXPECT_EQ(header.metadata.at("k"), "v");
    }
  }
}

TEST(ShardLayout, FillsFilesInTheOrderOfThePlan) {
  const std::vector<PlannedTensor> plan = {
      {"a", DType::kU8, {4}}, {"b", DType::kF32, {1}}, {"c", DType::kU8, {9}}, {"d", DType::kU8, {1}}};
  const auto shards = lay_out_shards(plan, 8, {});
  ASSERT_EQ(shards.size(), 3U);
  EXPECT_THAT(numbers_of(shards[0]), ElementsAre(1, 0)) << "large elements first";
  EXPECT_THAT(numbers_of(shards[1]), ElementsAre(2)) << "too large for any file, so alone";
  EXPECT_THAT(numbers_of(shards[2]), ElementsAre(3));
}

TEST(ShardLayout, AnEmptyPlanIsOneFile) {
  const auto shards = lay_out_shards({}, 8, {});
  ASSERT_EQ(shards.size(), 1U);
  EXPECT_TRUE(parse_header(bytes_in(shards[0].head), "test").tensors.empty());
}

TEST(ShardLayout, RefusesImpossiblePlans) {
  const std::vector<PlannedTensor> twice = {{"a", DType::kU8, {1}}, {"a", DType::kU8, {1}}};
  EXPECT_THROW(lay_out_shards(twice, 8, {}), ConfigError);
  EXPECT_THROW(lay_out_shards({}, 0, {}), ConfigError);
  EXPECT_THROW(lay_out_shards({}, 8, {{"k", "\xff"}}), ConfigError);
}

TEST(ShardName, CountsFromOne) { EXPECT_EQ(shard_name("model", 2, 5), "model-00002-of-00005.safetensors"); }

}  // namespace
}  // namespace headrace::safetensors
