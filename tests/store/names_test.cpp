#include "headrace/store/names.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>

namespace headrace::store {
namespace {

TEST(Names, OfStepsGoBothWays) {
  EXPECT_EQ(step_name(123), "step-00000123");
  for (const int64_t step :
       {int64_t{0}, int64_t{7}, int64_t{99'999'999}, int64_t{100'000'000}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(step_in(step_name(step)), step);
  }
}

TEST(Names, OtherNamesAreNoSteps) {
  for (const std::string name : {"", "step-", "step-1", "step-000000001", "step-0000000x", "step-00000001 ",
                                 "step--0000001", "step-99999999999999999999", ".step-00000001", "latest"}) {
    EXPECT_FALSE(step_in(name)) << name;
  }
}

TEST(Names, HiddenOnesGoBothWays) {
  const std::string name = hidden_name(123, Hidden::kPartial);
  EXPECT_EQ(name, ".step-00000123.partial-" + std::to_string(::getpid()));
  for (const Hidden what : {Hidden::kPartial, Hidden::kReplaced, Hidden::kRemoved}) {
    const auto hidden = hidden_in(hidden_name(5, what));
    ASSERT_TRUE(hidden);
    EXPECT_EQ(hidden->step, 5);
    EXPECT_EQ(hidden->what, what);
  }
  for (const std::string other : {"step-00000001", ".step-00000001", ".step-00000001.partial-", ".step-1.partial-2",
                                  ".step-00000001.partial-x", "step-00000001.partial-1", ".partial-1", ".git"}) {
    EXPECT_FALSE(hidden_in(other)) << other;
  }
}

TEST(Names, TemporaryLatest) {
  EXPECT_TRUE(is_temporary_latest(".latest.12-0.tmp"));
  EXPECT_FALSE(is_temporary_latest("latest"));
  EXPECT_FALSE(is_temporary_latest(".other.12-0.tmp"));
}

}  // namespace
}  // namespace headrace::store
