#include "headrace/base/errors.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace headrace {
namespace {

TEST(Errors, TextStartsWithThePlace) {
  const ConfigError error("cli.parse", "batch 0 is not positive.");
  EXPECT_STREQ(error.what(), "[cli.parse] batch 0 is not positive.");
  EXPECT_EQ(error.place(), "cli.parse");
}

TEST(Errors, IoErrorNamesPathReasonAndHint) {
  const IoError error("os.write", "cannot write", "out/x.bin", ENOSPC, "Free space.");
  EXPECT_STREQ(error.what(), "[os.write] cannot write out/x.bin: No space left on device. Free space.");
  EXPECT_EQ(error.error_number(), ENOSPC);
}

}  // namespace
}  // namespace headrace
