// Columns by themselves, without a model: gradients are set by hand, tasks are called in the order that the step graph
// keeps.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "headrace/device/emulated.h"
#include "headrace/policy/zenflow/deferred_update.h"
#include "headrace/policy/zenflow/exchange.h"
#include "headrace/policy/zenflow/selective_update.h"
#include "tests/support/fake_gpu.h"

namespace headrace::policy::zenflow {
namespace {

constexpr int64_t kRows = 6, kColumns = 10;
constexpr OptimizerSettings kAdamW{};
constexpr double kRate = 1e-3;

model::BlockSpec one_matrix(model::Layout layout) {
  model::BlockSpec spec{.name = "block", .parameters = {}, .numel = 64};
  model::ParameterSpec matrix;
  matrix.shape = layout == model::Layout::kOutIn ? std::vector{kRows, kColumns} : std::vector{kColumns, kRows};
  matrix.numel = kRows * kColumns;
  matrix.layout = layout;
  spec.parameters.push_back(matrix);
  return spec;
}

class Columns {
 public:
  Columns(model::Layout layout, int64_t interval, bool is_gpu = false)
      : device_(device::make_emulated_device({})),
        columns_(make_block_columns(one_matrix(layout), {false}, 0.3, 17)),
        storage_(*device_, {columns_}, {.num_gradients = static_cast<int32_t>(2 * interval)},
                 {at::ones({64}, at::kFloat)}, std::make_shared<memory::Budget>("device", 0, ""),
                 std::make_shared<memory::Budget>("host", 0, "")),
        ledger_(WindowSum::kSlots, static_cast<int32_t>(2 * interval)) {
    scores_.emplace_back(kColumns);
    selective_ = is_gpu ? make_gpu_selective_update(*device_, {columns_}) : make_host_selective_update();
  }

  std::span<const double> scores() const { return scores_.front().step(); }
  MatrixColumns& matrix() { return columns_.matrices.front(); }
  float* gradient() { return storage_.blocks()[0].gradients.data_ptr<float>(); }
  float* weights() { return storage_.blocks()[0].weights.data_ptr<float>(); }
  const DeferredPart& host() { return storage_.deferred(0); }
  const ImportantPart& important() { return storage_.important(0); }
  int64_t num_pieces() const { return static_cast<int64_t>(columns_.pieces.size()); }

  // One step; the window ends with it when asked, and the swaps are made then.
  void step(bool ends_window, std::vector<Swap> swaps = {}) {
    std::vector<float> sent(64);
    selective_->split_undeferred(device(), scores_);
    for (size_t p = 0; p < columns_.pieces.size(); ++p) {
      const Piece& piece = columns_.pieces[p];
      selective_->split_piece(device(), p, sent.data(), scores_);
      std::copy_n(sent.data(), piece.end - piece.begin,
                  host().gradients[static_cast<size_t>(ledger_.arrival().slot)] + piece.begin);
    }
    selective_->update_important(device(), kAdamW, kRate, 1);
    SelectiveUpdate::Scores* const scores = &scores_;
    selective_->take_scores({&scores, 1});
    ledger_.enter(1, 5);
    if (ends_window) end_window(std::move(swaps));
  }

 private:
  DeviceBlock device() { return {0, columns_, storage_.blocks()[0], storage_.important(0)}; }

  WindowUpdate make_update(std::vector<Swap> swaps) {
    WindowUpdate update;
    update.parts = ledger_.end_window();
    update.plain = update.decaying = {.learning_rate = kRate};
    std::vector<int64_t> updates;
    for (const int32_t channel : matrix().deferred)
      updates.push_back(matrix().updates[static_cast<size_t>(channel)] + 1);
    update.corrections.push_back(kernel::bias_corrections(update.plain, updates));
    if (!swaps.empty()) update.swaps = {std::move(swaps)};
    return update;
  }

  // The update of all comes after columns that leave have been updated early, and is merged at once.
  void end_window(std::vector<Swap> swaps) {
    const WindowUpdate update = make_update(std::move(swaps));
    for (size_t p = 0; p < columns_.pieces.size(); ++p) {
      const DeferredPiece at{columns_, p, host()};
      selective_->release_columns(device(), p, update.swaps, host().leaving + exchange_offset(columns_, p));
      update_early(at, update);
      update_window(at, update, pace_);
    }
    for (const int32_t channel : matrix().deferred) ++matrix().updates[static_cast<size_t>(channel)];
    for (const Swap& swap : update.swaps.empty() ? std::vector<Swap>() : update.swaps.front()) {
      std::swap(matrix().important[static_cast<size_t>(swap.important)],
                matrix().deferred[static_cast<size_t>(swap.deferred)]);
    }
    for (size_t p = 0; p < columns_.pieces.size(); ++p) {
      selective_->merge_piece(device(), p, host().state.master + columns_.pieces[p].begin);
      selective_->adopt_columns(device(), p, update.swaps, host().coming + exchange_offset(columns_, p));
    }
  }

  std::unique_ptr<device::Device> device_;
  BlockColumns columns_;
  Storage storage_;
  std::unique_ptr<SelectiveUpdate> selective_;
  GradientLedger ledger_;
  std::vector<ColumnScore> scores_;
  device::Pace pace_{device::Rate{}};
};

// By channel: an element of it in the flat buffer.
int64_t element(model::Layout layout, int64_t channel, int64_t i) {
  return layout == model::Layout::kOutIn ? i * kColumns + channel : channel * kRows + i;
}

// Every window other columns change sides, so that each has been on both.
std::vector<Swap> swaps_of_window(int64_t window) {
  return {{static_cast<int32_t>(window % 3), static_cast<int32_t>(window % 7)},
          {static_cast<int32_t>((window + 1) % 3), static_cast<int32_t>((window + 3) % 7)}};
}

class ColumnStateTest : public ::testing::TestWithParam<model::Layout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, ColumnStateTest, ::testing::Values(model::Layout::kOutIn, model::Layout::kInOut));

// Check c, and case "ZenFlow constant gradient": every update of every column moves lr to fp32 rounding.
TEST_P(ColumnStateTest, UnderAConstantGradientEveryUpdateMovesTheRate) {
  for (const int64_t interval : {1, 2, 4, 8}) {
    Columns columns(GetParam(), interval);
    EXPECT_GT(columns.num_pieces(), 1);
    for (int64_t step = 0; step < 10 * interval; ++step) {
      const std::vector<float> before(columns.weights(), columns.weights() + 64);
      const std::vector<int64_t> updates = columns.matrix().updates;
      for (int64_t i = 0; i < kRows * kColumns; ++i) columns.gradient()[i] = i % 3 == 0 ? -0.25F : 1.5F;
      const bool ends = (step + 1) % interval == 0;
      columns.step(ends, ends && step > interval ? swaps_of_window(step / interval) : std::vector<Swap>());
      for (int64_t channel = 0; channel < kColumns; ++channel) {
        const auto at = static_cast<size_t>(channel);
        const auto moves = static_cast<double>(columns.matrix().updates[at] - updates[at]);
        EXPECT_LE(moves, 1);
        for (int64_t i = 0; i < kRows; ++i) {
          const int64_t e = element(GetParam(), channel, i);
          const double sign = e % 3 == 0 ? -1 : 1;
          EXPECT_NEAR(columns.weights()[e] - before[static_cast<size_t>(e)], -sign * kRate * moves, 1.5e-7)
              << "S " << interval << ", step " << step << ", channel " << channel;
        }
      }
    }
  }
}

// Check e: v of a column, wherever it was meanwhile, is what its own gradients make it.
TEST_P(ColumnStateTest, SecondMomentsDecayAsExactOnesDo) {
  Columns columns(GetParam(), 2);
  std::vector<double> expected(kColumns, 0);
  for (int64_t step = 0; step < 40; ++step) {
    const double gradient = step < 20 ? 1 : 0.1;
    const std::vector<int64_t> updates = columns.matrix().updates;
    std::fill_n(columns.gradient(), 64, static_cast<float>(gradient));
    const bool ends = step % 2 == 1;
    columns.step(ends, ends && step > 4 ? swaps_of_window(step / 2) : std::vector<Swap>());
    for (size_t c = 0; c < kColumns; ++c) {
      if (columns.matrix().updates[c] > updates[c]) expected[c] = 0.999 * expected[c] + 0.001 * gradient * gradient;
    }
  }
  const auto expect_second_moments = [&](const std::vector<int32_t>& channels, const float* v) {
    for (size_t p = 0; p < channels.size(); ++p) {
      const auto n = static_cast<int64_t>(channels.size()), position = static_cast<int64_t>(p);
      const float value = v[GetParam() == model::Layout::kOutIn ? n + position : position * kRows];
      const double of_channel = expected[static_cast<size_t>(channels[p])];
      EXPECT_NEAR(value, of_channel, 1e-5 * of_channel) << channels[p];
    }
  };
  expect_second_moments(columns.matrix().important, columns.important().v);
  expect_second_moments(columns.matrix().deferred, columns.host().state.v);
}

// Check f: there and back again, without an update of weight between, leaves every bit as it was.
TEST_P(ColumnStateTest, ASwapToAndFroIsTheIdentity) {
  Columns moved(GetParam(), 1), still(GetParam(), 1);
  for (int64_t step = 0; step < 12; ++step) {
    for (Columns* columns : {&moved, &still}) {
      for (int64_t i = 0; i < 64; ++i) columns->gradient()[i] = std::sin(static_cast<float>(i + 7 * step));
    }
    moved.step(true, step > 1 ? swaps_of_window(step / 2) : std::vector<Swap>());  // each pair of swaps twice
    still.step(true);
  }
  // Windows of one step merged at once are AdamW on either side: what differs is where a column's state lay.
  EXPECT_EQ(std::memcmp(moved.weights(), still.weights(), 64 * sizeof(float)), 0);
  EXPECT_EQ(moved.matrix().updates, still.matrix().updates);
}

// The kernels for GPUs, run on the host: the same bits on both sides of the link, scores within a millionth.
TEST_P(ColumnStateTest, AGpuDoesWhatTheHostDoes) {
  if (const std::string why = support::why_no_fake_gpu(); !why.empty()) GTEST_SKIP() << why;
  Columns host(GetParam(), 2), gpu(GetParam(), 2, /*is_gpu=*/true);
  for (int64_t step = 0; step < 12; ++step) {
    for (Columns* columns : {&host, &gpu}) {
      for (int64_t i = 0; i < kRows * kColumns; ++i) {
        columns->gradient()[i] = std::sin(static_cast<float>(7 * i + 3 * step));
      }
      const bool ends = step % 2 == 1;
      columns->step(ends, ends ? swaps_of_window(step / 2) : std::vector<Swap>());
    }
    ASSERT_EQ(gpu.matrix().updates, host.matrix().updates);
    ASSERT_EQ(std::memcmp(gpu.weights(), host.weights(), 64 * sizeof(float)), 0) << "step " << step;
    const auto numel = static_cast<size_t>(host.matrix().important_numel()) * sizeof(float);
    ASSERT_EQ(std::memcmp(gpu.important().m, host.important().m, numel), 0) << "step " << step;
    ASSERT_EQ(std::memcmp(gpu.important().v, host.important().v, numel), 0) << "step " << step;
    for (size_t i = 0; i < host.scores().size(); ++i) {
      ASSERT_NEAR(gpu.scores()[i], host.scores()[i], 1e-6 * host.scores()[i]) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace headrace::policy::zenflow
