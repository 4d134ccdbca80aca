#include "headrace/device/cores.h"

#include <gtest/gtest.h>

namespace headrace::device {
namespace {

using List = std::vector<int>;

TEST(Cores, AreSplitInHalves) {
  EXPECT_EQ(split({0, 1, 4, 5}).compute, (List{0, 1}));
  EXPECT_EQ(split({0, 1, 4, 5}).host, (List{4, 5}));
  EXPECT_EQ(split({2, 3, 7}).compute, (List{2, 3}));
  EXPECT_EQ(split({2, 3, 7}).host, (List{7}));
  EXPECT_EQ(split({3}).compute, (List{3}));
  EXPECT_EQ(split({3}).host, (List{3}));
  EXPECT_TRUE(split({}).compute.empty());
}

TEST(Cores, AreReportedAsRanges) {
  EXPECT_EQ(text_of({}), "");
  EXPECT_EQ(text_of({4}), "4");
  EXPECT_EQ(text_of({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

}  // namespace
}  // namespace headrace::device
