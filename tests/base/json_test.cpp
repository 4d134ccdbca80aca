#include "headrace/base/json.h"

#include <gtest/gtest.h>

#include "headrace/base/errors.h"

namespace headrace {
namespace {

TEST(ParseJson, ReadsAndNamesTheSourceOnError) {
  EXPECT_EQ(parse_json("{\"a\": [1, 2]}", "x.y", "f.json")["a"][1], 2);
  try {
    parse_json("{\"a\": ", "config.load", "f.json");
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("[config.load] f.json: not valid JSON"), std::string::npos);
  }
}

TEST(ParseJson, RefusesDeepNesting) {
  EXPECT_THROW(parse_json(std::string(100000, '['), "x.y", "f.json"), DataError);
  EXPECT_THROW(parse_json(std::string(200, '[') + std::string(200, ']'), "x.y", "f.json"), DataError);
  EXPECT_NO_THROW(parse_json(std::string(100, '[') + std::string(100, ']'), "x.y", "f.json"));
}

TEST(ParseJson, RefusesWhatFollowsAZeroByte) {
  EXPECT_THROW(parse_json(std::string_view("{}\0 rest", 8), "x.y", "f.json"), DataError);
}

TEST(IsInt, TellsIntegersFromTheRest) {
  EXPECT_TRUE(is_int(Json(3)));
  EXPECT_TRUE(is_int(Json(-3)));
  EXPECT_FALSE(is_int(Json(3.0)));
  EXPECT_FALSE(is_int(Json("3")));
  EXPECT_FALSE(is_int(Json(18446744073709551615ULL)));
}

}  // namespace
}  // namespace headrace
