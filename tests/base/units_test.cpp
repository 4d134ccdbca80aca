#include "headrace/base/units.h"

#include <gtest/gtest.h>

#include "headrace/base/errors.h"

namespace headrace {
namespace {

TEST(Units, ParsesBytes) {
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("8GiB"), int64_t{8} << 30);
  EXPECT_EQ(parse_bytes("1.5 GiB"), int64_t{3} << 29);
  EXPECT_EQ(parse_bytes("2GB"), 2'000'000'000);
  EXPECT_EQ(parse_bytes("0"), 0);
}

TEST(Units, RefusesWhatIsNotASize) {
  for (const char* text : {"", "GiB", "-1GiB", "8gb", "1e400", "nan", "inf", "8GiBx", "99999999TiB"}) {
    EXPECT_THROW(parse_bytes(text), ConfigError) << text;
  }
}

TEST(Units, ParsesSeconds) {
  EXPECT_DOUBLE_EQ(parse_seconds("30s"), 30);
  EXPECT_DOUBLE_EQ(parse_seconds("10min"), 600);
  EXPECT_DOUBLE_EQ(parse_seconds("250ms"), 0.25);
  EXPECT_DOUBLE_EQ(parse_seconds("2h"), 7200);
  EXPECT_THROW(parse_seconds("3 weeks"), ConfigError);
}

TEST(Units, FormatsForPeople) {
  EXPECT_EQ(format_bytes(17), "17 B");
  EXPECT_EQ(format_bytes(int64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(format_bytes(int64_t{312} << 20), "312 MiB");
  EXPECT_EQ(format_seconds(0.25), "0.25s");
  EXPECT_EQ(format_seconds(200), "3m20s");
  EXPECT_EQ(format_seconds(3725), "1h02m");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(-999), "-999");
  EXPECT_EQ(format_count(-123456), "-123,456");
}

}  // namespace
}  // namespace headrace
