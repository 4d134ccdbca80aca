#include "headrace/base/pattern.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Pattern, StarsStandForAnything) {
  EXPECT_TRUE(matches("model.layers.3.mlp.up_proj.weight", "model.layers.*.mlp.*"));
  EXPECT_TRUE(matches("abc", "abc"));
  EXPECT_TRUE(matches("abc", "*"));
  EXPECT_TRUE(matches("", "**"));
  EXPECT_TRUE(matches("aXbXc", "a*b*c"));
  EXPECT_TRUE(matches("aab", "*ab"));
}

TEST(Pattern, TheWholeNameMustFit) {
  EXPECT_FALSE(matches("model.norm.weight", "norm"));
  EXPECT_FALSE(matches("abc", "ab"));
  EXPECT_FALSE(matches("abc", ""));
  EXPECT_FALSE(matches("ab", "a*bc"));
}

TEST(Pattern, ManyStarsStayFast) {
  const std::string name(20000, 'a');
  EXPECT_FALSE(matches(name, "*a*a*a*a*a*a*a*a*a*a*b"));
}

TEST(Pattern, AnyOfSeveral) {
  EXPECT_TRUE(matches_any("b", {"a", "b"}));
  EXPECT_FALSE(matches_any("c", {"a", "b"}));
  EXPECT_FALSE(matches_any("c", {}));
}

}  // namespace
}  // namespace headrace
