#include "headrace/os/interrupt.h"

#include <gtest/gtest.h>

#include "headrace/base/errors.h"

namespace headrace::os {
namespace {

TEST(InterruptGuard, FirstSignalOfEachKindSetsTheFlag) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const InterruptGuard guard;
    EXPECT_FALSE(InterruptGuard::requested());
    std::raise(signal);
    EXPECT_TRUE(InterruptGuard::requested());
  }
  EXPECT_FALSE(InterruptGuard::requested()) << "a new run must not see an old interrupt";
}

TEST(InterruptGuardDeathTest, SecondSignalOfTheKindKills) {
  EXPECT_EXIT(
      {
        const InterruptGuard guard;
        std::raise(SIGTERM);
        std::raise(SIGINT);
        std::raise(SIGINT);
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

TEST(InterruptGuard, ARequestToSaveIsTakenOnceAndStopsNothing) {
  const InterruptGuard guard;
  EXPECT_FALSE(InterruptGuard::take_save_request());
  for (int i = 0; i < 3; ++i) {
    std::raise(SIGUSR1);
    EXPECT_TRUE(InterruptGuard::take_save_request());
    EXPECT_FALSE(InterruptGuard::take_save_request());
  }
  EXPECT_FALSE(InterruptGuard::requested());
}

TEST(InterruptGuard, RestoresTheHandlersFound) {
  std::signal(SIGINT, SIG_IGN);
  { const InterruptGuard guard; }
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_IGN);
}

TEST(InterruptGuard, OnlyOneAtATime) {
  const InterruptGuard guard;
  EXPECT_THROW(InterruptGuard(), InternalError);
  std::raise(SIGINT);
  EXPECT_TRUE(InterruptGuard::requested());
}

}  // namespace
}  // namespace headrace::os
