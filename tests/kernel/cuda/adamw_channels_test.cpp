#include "headrace/kernel/cuda/adamw_channels.h"

#include <gtest/gtest.h>

#include <list>
#include <vector>

#include "headrace/base/errors.h"
#include "tests/kernel/cuda/device_buffer.h"
#include "tests/kernel/random_channels.h"

namespace headrace::kernel {
namespace {

class CudaAdamWChannels : public NeedsGpu {};

const ChannelAdamW kAdamW{.learning_rate = 3e-4, .keep = 0.999f};

std::vector<ChosenChannels> choices() {
  std::vector<ChosenChannels> all = many_choices(1);
  Rng rng(2);
  for (const Axis axis : {Axis::kColumns, Axis::kRows}) all.push_back(choose({60, 300, axis}, 24, rng));
  return all;
}

// The gradients of a window on both machines; every other one in bf16.
class Window {
 public:
  Window(size_t count, size_t num_slots, size_t offset) {
    for (size_t i = 0; i < num_slots; ++i) {
      const float scale = 0.4f + 0.1f * static_cast<float>(i);
      const auto& wide = fp32_.emplace_back(random_values(count, 10 + i));
      if (i % 2 == 0) {
        host_.push_back({std::span<const float>(wide), scale});
        device_.push_back({{.fp32 = device_fp32_.emplace_back(wide, offset).data()}, scale});
        continue;
      }
      auto& narrow = bf16_.emplace_back(count);
      to_bf16(wide, narrow);
      host_.push_back({std::span<const Bf16>(narrow), scale});
      device_.push_back({{.bf16 = device_bf16_.emplace_back(narrow, offset).data()}, scale});
    }
  }
  WindowGradient on_host() const { return {host_, 0.3f}; }
  cuda::DeviceWindow on_device() const { return {device_, 0.3f}; }

 private:
  std::list<std::vector<float>> fp32_;
  std::list<std::vector<Bf16>> bf16_;
  std::list<DeviceBuffer<float>> device_fp32_;
  std::list<DeviceBuffer<Bf16>> device_bf16_;
  std::vector<WindowSlot> host_;
  std::vector<cuda::DeviceSlot> device_;
};

// Deferred channels of a matrix and everything an update of some of their lines needs, on both machines.
struct Subject {
  Subject(const ChosenChannels& chosen, size_t num_slots, size_t offset)
      : shape(chosen.shape),
        channels(chosen.deferred),
        lines{num_lines(shape, channels.size()) / 3, num_lines(shape, channels.size())},
        count(static_cast<size_t>(lines.count() * line_width(shape, channels.size()))),
        corrections(bias_corrections(kAdamW, counters(channels.size()))),
        step_size(corrections.step_size),
        second_correction(corrections.second_correction),
        window(count, num_slots, offset),
        m(random_values(count, 3)),
        v(squares(random_values(count, 4))),
        device_m(m, offset),
        device_v(v, offset) {}

  static std::vector<int64_t> counters(size_t size) {
    std::vector<int64_t> counters(size);
    for (size_t i = 0; i < size; ++i) counters[i] = static_cast<int64_t>(1 + i % 7);
    return counters;
  }
  static std::vector<float> squares(std::vector<float> values) {
    for (float& x : values) x *= x;
    return values;
  }
  cuda::DeviceStep step() const {
    return {window.on_device(),
            {step_size.data(), second_correction.data(), static_cast<int64_t>(channels.size())},
            kAdamW};
  }
  bool has_same_moments() const { return same_bytes(device_m.to_host(), m) && same_bytes(device_v.to_host(), v); }

  MatrixShape shape;
  std::vector<int32_t> channels;
  Lines lines;
  size_t count;
  BiasCorrections corrections;
  DeviceBuffer<float> step_size, second_correction;
  Window window;
  std::vector<float> m, v;
  DeviceBuffer<float> device_m, device_v;
};

template <class Body>
void for_each_subject(const Body& body) {
  for (const ChosenChannels& chosen : choices()) {
    for (const size_t num_slots : {1u, 4u}) {
      for (const size_t offset : {0u, 1u}) {
        SCOPED_TRACE(testing::Message() << chosen << ", " << num_slots << " slots, offset " << offset);
        Subject subject(chosen, num_slots, offset);
        body(subject, offset);
      }
    }
  }
}

TEST_F(CudaAdamWChannels, CompactMastersEqualTheHostsBitForBit) {
  for_each_subject([](Subject& s, size_t offset) {
    std::vector<float> master = random_values(s.count, 5);
    const DeviceBuffer<float> device_master(master, offset);
    cuda::adamw_update_channels({device_master.data(), s.device_m.data(), s.device_v.data()}, s.shape, s.lines,
                                s.step(), nullptr);
    adamw_update_channels({master, s.m, s.v}, s.window.on_host(), s.shape, s.lines, s.corrections, kAdamW);
    ASSERT_TRUE(same_bytes(device_master.to_host(), master) && s.has_same_moments());
  });
}

TEST_F(CudaAdamWChannels, MastersInPlaceEqualTheHostsBitForBit) {
  for_each_subject([](Subject& s, size_t offset) {
    std::vector<float> matrix = random_values(static_cast<size_t>(s.shape.num_elements()), 6);
    const DeviceBuffer<float> device_matrix(matrix, offset);
    const DeviceBuffer<int32_t> device_channels(s.channels);
    cuda::adamw_update_selected({device_matrix.data(), s.device_m.data(), s.device_v.data()}, device_channels.data(),
                                s.shape, s.lines, s.step(), nullptr);
    adamw_update_selected({matrix, s.channels, s.m, s.v}, s.window.on_host(), s.shape, s.lines, s.corrections, kAdamW);
    ASSERT_TRUE(same_bytes(device_matrix.to_host(), matrix) && s.has_same_moments());
  });
}

TEST_F(CudaAdamWChannels, RunningSumsEqualTheHostsBitForBit) {
  for (const size_t count : {1u, 7u, 1024u, 5003u}) {
    for (const size_t offset : {0u, 1u}) {
      const Window window(count, 3, offset);
      std::vector<float> sum(count, 9.0f);
      const DeviceBuffer<float> device_sum(sum, offset);
      for (size_t slot = 0; slot < 3; ++slot) {
        const WindowSlot& host = window.on_host().slots[slot];
        accumulate_gradient(sum, host.gradient, host.scale, slot == 0);
        cuda::accumulate_gradient(device_sum.data(), static_cast<int64_t>(count), window.on_device().slots[slot],
                                  slot == 0, nullptr);
      }
      ASSERT_TRUE(same_bytes(device_sum.to_host(), sum)) << count;
    }
  }
}

// The checks come before anything is launched, so they need no GPU.
TEST(CudaAdamWChannelsArguments, AreRefusedWhenTheyContradictEachOther) {
  const MatrixShape shape{4, 6, Axis::kColumns};
  const std::vector<cuda::DeviceSlot> one(1), many(cuda::kMaxWindowSlots + 1);
  const auto update = [&](const MatrixShape& of, Lines lines, const std::vector<cuda::DeviceSlot>& slots) {
    cuda::adamw_update_channels({}, of, lines, {{slots}, {.count = 2}, {}}, nullptr);
  };
  EXPECT_THROW(update({4, -6}, {0, 4}, one), InternalError);
  EXPECT_THROW(update(shape, {0, 5}, one), InternalError);
  EXPECT_THROW(update(shape, {0, 4}, {}), InternalError);
  EXPECT_THROW(update(shape, {0, 4}, many), InternalError);
}

TEST(CudaAdamWChannelsArguments, NothingToDoNeedsNoDevice) {
  const std::vector<cuda::DeviceSlot> one(1);
  EXPECT_NO_THROW(cuda::adamw_update_channels({}, {4, 6, Axis::kColumns}, {2, 2}, {{one}, {.count = 2}, {}}, nullptr));
  EXPECT_NO_THROW(cuda::accumulate_gradient(nullptr, 0, {}, true, nullptr));
}

}  // namespace
}  // namespace headrace::kernel
