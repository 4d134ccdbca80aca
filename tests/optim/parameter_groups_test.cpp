#include "headrace/optim/parameter_groups.h"

#include <gtest/gtest.h>

#include "headrace/base/errors.h"

namespace headrace::optim {
namespace {

TEST(ParameterGroups, JoinsNeighboursOfOneKindOverGaps) {
  const ParameterRange ranges[] = {{0, 10, true, false}, {16, 16, true, false}, {32, 5, false, false}};
  const auto [groups, state_numel] = group_parameters(ranges);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].numel, 32);
  EXPECT_EQ(groups[1].offset, 32);
  EXPECT_EQ(groups[1].state_offset, 32);
  EXPECT_FALSE(groups[1].decays);
  EXPECT_EQ(state_numel, 37);
}

// Case "empty": a parameter with 0 elements between two others, and a frozen one that has no state.
TEST(ParameterGroups, FrozenAndEmptyHaveNoState) {
  const ParameterRange ranges[] = {
      {0, 16, true, false}, {16, 0, true, false}, {16, 16, true, true}, {32, 16, true, false}};
  const auto [groups, state_numel] = group_parameters(ranges);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].numel, 16);
  EXPECT_EQ(groups[1].offset, 32);
  EXPECT_EQ(groups[1].state_offset, 16);
  EXPECT_EQ(state_numel, 32);
}

TEST(ParameterGroups, RefusesOverlap) {
  const ParameterRange ranges[] = {{0, 16, true, false}, {8, 16, true, false}};
  EXPECT_THROW(group_parameters(ranges), InternalError);
}

}  // namespace
}  // namespace headrace::optim
