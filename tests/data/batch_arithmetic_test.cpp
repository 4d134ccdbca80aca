#include "headrace/data/batch_arithmetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/errors.h"
#include "tests/data/toy.h"

namespace headrace::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(BatchArithmetic, WhatIsMissingFollows) {
  const BatchSizes defaults = resolve_batch({});
  EXPECT_EQ(defaults.global_batch, 1);
  const BatchSizes forward = resolve_batch({.micro_batch = 4, .accumulate = 8, .ranks = 2});
  EXPECT_EQ(forward.global_batch, 64);
  const BatchSizes accumulate = resolve_batch({.global_batch = 256, .micro_batch = 4});
  EXPECT_EQ(accumulate.accumulate, 64);
  const BatchSizes micro = resolve_batch({.global_batch = 256, .accumulate = 8, .ranks = 4});
  EXPECT_EQ(micro.micro_batch, 8);
  const BatchSizes all = resolve_batch({.global_batch = 256, .micro_batch = 4, .accumulate = 64});
  EXPECT_EQ(all.accumulate, 64);
}

TEST(BatchArithmetic, ConflictNamesTheNumbersAndWhatWorks) {
  const std::string text = error_of<ConfigError>(
      [] { resolve_batch({.global_batch = 256, .micro_batch = 4, .accumulate = 8, .ranks = 1}); });
  EXPECT_THAT(text, AllOf(HasSubstr("256"), HasSubstr("micro batch 4"), HasSubstr("accumulate 8"), HasSubstr("1 rank"),
                          HasSubstr("Use accumulate 64.")));
}

TEST(BatchArithmetic, EveryProposalWorks) {
  EXPECT_THAT(error_of<ConfigError>([] { resolve_batch({.global_batch = 10, .micro_batch = 4}); }),
              HasSubstr("micro batch 2 with accumulate 5"));
  EXPECT_THAT(error_of<ConfigError>([] { resolve_batch({.global_batch = 10, .micro_batch = 2, .ranks = 3}); }),
              HasSubstr("multiple of 3"));
  EXPECT_THAT(error_of<ConfigError>([] { resolve_batch({.global_batch = 2, .micro_batch = 4}); }),
              HasSubstr("micro batch 2 with accumulate 1"));
  EXPECT_THAT(error_of<ConfigError>([] { resolve_batch({.global_batch = 10, .accumulate = 4}); }), HasSubstr("10"));
}

TEST(BatchArithmetic, RefusesNumbersOutOfRange) {
  EXPECT_THROW(resolve_batch({.micro_batch = 0}), ConfigError);
  EXPECT_THROW(resolve_batch({.accumulate = -1}), ConfigError);
  EXPECT_THROW(resolve_batch({.ranks = 0}), ConfigError);
  EXPECT_THROW(resolve_batch({.global_batch = int64_t{1} << 62}), ConfigError);
  EXPECT_THROW(resolve_batch({.micro_batch = 1 << 20, .accumulate = 1 << 20, .ranks = 1 << 20}), ConfigError);
}

}  // namespace
}  // namespace headrace::data
