#include "headrace/device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "headrace/base/errors.h"
#include "headrace/device/cpu.h"
#include "headrace/device/cuda.h"

namespace headrace::device {
namespace {

using testing::HasSubstr;

template <class Error, class Call>
std::string text_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Device, ParsesItsOwnNames) {
  for (const Kind kind : {Kind::kCpu, Kind::kEmulated, Kind::kCuda}) EXPECT_EQ(parse(name_of(kind)), kind);
}

TEST(Device, RefusesOtherWordsWithTheChoices) {
  for (const std::string word : {"", "CPU", "gpu", "cuda:0"}) {
    EXPECT_THAT(text_of<ConfigError>([&] { parse(word); }), HasSubstr("'" + word + "'. Use cpu, emulated or cuda."));
  }
}

TEST(Device, CpuCopiesAndHasNothingToWaitFor) {
  const auto cpu = make_cpu_device();
  EXPECT_EQ(cpu->kind(), Kind::kCpu);
  EXPECT_THAT(cpu->describe(), HasSubstr("cpu"));
  const Slab from = cpu->allocate(Tier::kHost, 3), to = cpu->allocate(Tier::kDevice, 3);
  from.data()[2] = std::byte{7};
  cpu->copy(Direction::kToDevice, to.data(), from.data(), 3);
  EXPECT_EQ(to.data()[2], std::byte{7});
  cpu->wait(cpu->record());
  EXPECT_EQ(cpu->record().mark(), nullptr);
  EXPECT_EQ(cpu->cores().compute, cpu->cores().host);
  EXPECT_TRUE(cpu->take_warnings().empty());
}

TEST(Device, WithoutCudaEveryQuestionSaysHowToBuildIt) {
  if (cuda::is_built()) GTEST_SKIP() << "this build has CUDA: nothing refuses";
  EXPECT_THAT(text_of<DeviceError>([] { cuda::make_device({}); }), HasSubstr("cmake --preset cuda"));
  EXPECT_THAT(text_of<DeviceError>([] { cuda::num_devices(); }), HasSubstr("cmake --preset cuda"));
  EXPECT_THAT(text_of<DeviceError>([] { cuda::facts(0); }), HasSubstr("cmake --preset cuda"));
}

TEST(Device, WithCudaTheRuntimeAnswersOrGivesItsReason) {
  if (!cuda::is_built()) GTEST_SKIP() << "built without CUDA: there is no runtime to ask";
  int count = 0;
  try {
    count = cuda::num_devices();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot count the GPUs: "));
    EXPECT_THROW(cuda::make_device({}), DeviceError);
    return;
  }
  ASSERT_GT(count, 0);
  EXPECT_GT(cuda::facts(0).total_bytes, cuda::facts(0).free_bytes);
  EXPECT_THROW(cuda::facts(count), DeviceError);
  EXPECT_THROW(cuda::facts(-1), DeviceError);
}

}  // namespace
}  // namespace headrace::device
