#include "headrace/kernel/cuda/channels.h"

#include <gtest/gtest.h>

#include <vector>

#include "headrace/base/errors.h"
#include "tests/kernel/cuda/device_buffer.h"
#include "tests/kernel/random_channels.h"

namespace headrace::kernel {
namespace {

class CudaChannels : public NeedsGpu {};

// Shapes with wide accesses beside those of the host's test, most of which have none.
std::vector<ChosenChannels> choices() {
  std::vector<ChosenChannels> all = many_choices(1);
  Rng rng(2);
  for (const Axis axis : {Axis::kColumns, Axis::kRows}) {
    all.push_back(choose({200, 768, axis}, 80, rng));
    all.push_back(choose({64, 2052, axis}, 4, rng));
  }
  return all;
}

void expect_scores(const std::vector<double>& ours, const std::vector<double>& host, const ChosenChannels& chosen) {
  ASSERT_EQ(ours.size(), host.size());
  for (size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], host[i], 1e-6 * host[i]) << chosen;
}

void expect_same_copies(const ChosenChannels& chosen, size_t offset) {
  const auto& [shape, important, deferred] = chosen;
  const std::vector<float> matrix = random_values(chosen.num_elements(), 3), sevens(matrix.size(), 7.0f);
  const DeviceBuffer<float> device_matrix(matrix, offset), scattered(sevens, offset);
  for (const auto& channels : {important, deferred}) {
    const DeviceBuffer<int32_t> device_channels(channels);
    const cuda::ChannelList list{device_channels.data(), static_cast<int64_t>(channels.size())};
    const int64_t lines = num_lines(shape, channels.size()), width = line_width(shape, channels.size());
    const Lines part{lines / 3, lines};
    std::vector<float> compact(static_cast<size_t>(part.count() * width)), expected = scattered.to_host();
    const DeviceBuffer<float> device_compact(compact, offset);
    gather_channels(matrix, shape, channels, part, compact);
    scatter_channels(compact, shape, channels, part, expected);
    cuda::gather_channels(device_matrix.data(), shape, list, part, device_compact.data(), nullptr);
    cuda::scatter_channels(device_compact.data(), shape, list, part, scattered.data(), nullptr);
    ASSERT_TRUE(same_bytes(device_compact.to_host(), compact)) << chosen;
    ASSERT_TRUE(same_bytes(scattered.to_host(), expected)) << chosen;
  }
}

TEST_F(CudaChannels, GatherAndScatterMoveTheHostsBits) {
  for (const ChosenChannels& chosen : choices()) {
    for (const size_t offset : {0u, 1u}) expect_same_copies(chosen, offset);
  }
}

TEST_F(CudaChannels, GatherAndScatterMoveMoreLinesThanAGridHasRows) {
  Rng rng(3);
  for (const Axis axis : {Axis::kColumns, Axis::kRows}) {
    const MatrixShape shape{99'000, 1, axis};  // of which two thirds are copied
    expect_same_copies(choose(shape, axis == Axis::kColumns ? 1 : 0, rng), 0);
  }
}

TEST_F(CudaChannels, ScoresAreTheHostsWithinAMillionth) {
  for (const ChosenChannels& chosen : choices()) {
    const MatrixShape& shape = chosen.shape;
    const std::vector<float> matrix = random_values(chosen.num_elements(), 4);
    std::vector<double> scores(static_cast<size_t>(shape.num_channels()), 0.5);
    for (const size_t offset : {0u, 1u}) {
      const Lines rows{shape.rows / 4, shape.rows};
      const DeviceBuffer<float> device_matrix(matrix, offset);
      const DeviceBuffer<double> device_scores(scores), again(scores);
      const DeviceBuffer<double> workspace(
          std::vector<double>(static_cast<size_t>(cuda::score_workspace(shape, rows))));
      cuda::add_channel_scores(device_matrix.data(), shape, rows, {device_scores.data(), workspace.data()}, nullptr);
      cuda::add_channel_scores(device_matrix.data(), shape, rows, {again.data(), workspace.data()}, nullptr);
      add_channel_scores(matrix, shape, rows, scores);
      expect_scores(device_scores.to_host(), scores, chosen);
      ASSERT_TRUE(same_bytes(device_scores.to_host(), again.to_host())) << chosen;
    }
  }
}

TEST_F(CudaChannels, OnePassSplitsAsTheHostDoes) {
  for (const ChosenChannels& chosen : choices()) {
    const auto& [shape, important, deferred] = chosen;
    if (shape.axis != Axis::kColumns) continue;
    const std::vector<float> matrix = random_values(chosen.num_elements(), 5);
    const Lines rows{shape.rows / 4, shape.rows};
    const auto count = static_cast<size_t>(rows.count());
    std::vector<float> host_important(count * important.size()), host_deferred(count * deferred.size());
    std::vector<double> scores(static_cast<size_t>(shape.width), 0.5);
    const DeviceBuffer<int32_t> places(cuda::column_places(important, deferred, shape));
    const DeviceBuffer<double> workspace(std::vector<double>(static_cast<size_t>(cuda::score_workspace(shape, rows))));
    split_columns(matrix, shape, rows, {important, host_important}, {deferred, host_deferred}, scores);
    for (const size_t offset : {0u, 1u}) {
      const DeviceBuffer<float> device_matrix(matrix, offset);
      const DeviceBuffer<float> device_important(std::vector<float>(host_important.size()));
      const DeviceBuffer<float> device_deferred(std::vector<float>(host_deferred.size()));
      const DeviceBuffer<double> own_scores(std::vector<double>(static_cast<size_t>(shape.width), 0.5));
      cuda::split_columns(device_matrix.data(), shape, rows,
                          {places.data(), device_important.data(), static_cast<int64_t>(important.size()),
                           device_deferred.data(), static_cast<int64_t>(deferred.size())},
                          {own_scores.data(), workspace.data()}, nullptr);
      ASSERT_TRUE(same_bytes(device_important.to_host(), host_important)) << chosen;
      ASSERT_TRUE(same_bytes(device_deferred.to_host(), host_deferred)) << chosen;
      expect_scores(own_scores.to_host(), scores, chosen);
    }
  }
}

// The checks come before anything is launched, so they need no GPU.
TEST(CudaChannelsArguments, AreRefusedWhenTheyContradictEachOther) {
  const MatrixShape shape{4, 6, Axis::kColumns};
  const cuda::ChannelList chosen{.count = 2};
  EXPECT_THROW(cuda::gather_channels(nullptr, {-4, 6}, chosen, {0, 4}, nullptr, nullptr), InternalError);
  EXPECT_THROW(cuda::gather_channels(nullptr, shape, chosen, {0, 5}, nullptr, nullptr), InternalError);
  EXPECT_THROW(cuda::scatter_channels(nullptr, {4, 6, Axis::kRows}, chosen, {0, 3}, nullptr, nullptr), InternalError);
  EXPECT_THROW(cuda::add_channel_scores(nullptr, shape, {3, 2}, {}, nullptr), InternalError);
  EXPECT_THROW(cuda::split_columns(nullptr, {4, 6, Axis::kRows}, {0, 4}, {}, {}, nullptr), InternalError);
  const std::vector<int32_t> some = {1, 3}, others = {0, 3}, outside = {6};
  EXPECT_THROW(cuda::column_places(some, others, shape), InternalError);
  EXPECT_THROW(cuda::column_places(some, outside, shape), InternalError);
}

TEST(CudaChannelsArguments, PlacesSayTheSideAndThePosition) {
  const std::vector<int32_t> important = {3, 1}, deferred = {0, 4, 2};
  const std::vector<int32_t> places = cuda::column_places(important, deferred, {1, 6, Axis::kColumns});
  EXPECT_EQ((std::vector<int32_t>(places.begin(), places.end() - 1)), (std::vector<int32_t>{-1, 1, -3, 0, -2}));
  EXPECT_LT(places.back(), -6);
}

TEST(CudaChannelsArguments, NothingToDoNeedsNoDevice) {
  EXPECT_NO_THROW(cuda::gather_channels(nullptr, {0, 6}, {}, {0, 0}, nullptr, nullptr));
  EXPECT_NO_THROW(cuda::scatter_channels(nullptr, {4, 6}, {}, {0, 4}, nullptr, nullptr));
  EXPECT_NO_THROW(cuda::add_channel_scores(nullptr, {4, 6}, {2, 2}, {}, nullptr));
  EXPECT_NO_THROW(cuda::add_channel_scores(nullptr, {4, 6, Axis::kRows}, {2, 2}, {}, nullptr));
}

}  // namespace
}  // namespace headrace::kernel
