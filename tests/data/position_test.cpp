#include "headrace/data/position.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/toy.h"

namespace headrace::data {
namespace {

using testing::HasSubstr;

Position some_position() {
  Position position;
  position.step = 12;
  position.epoch = 3;
  position.sequence = 45;
  position.fingerprint = "0123456789abcdef0123456789abcdef";
  position.seed = ~uint64_t{0};
  position.shuffle = false;
  position.layout = "packed";
  position.max_length = 512;
  position.pack_look_ahead = 7;
  return position;
}

TEST(Position, SurvivesJson) {
  const Position position = some_position();
  EXPECT_EQ(Position::from_json(Json::parse(position.to_json().dump())), position);
}

TEST(Position, NamesTheKeyThatIsMissingOrWrong) {
  const Json good = some_position().to_json();
  for (const auto& [key, value] : good.items()) {
    Json without = good;
    without.erase(key);
    EXPECT_THAT(error_of<DataError>([&] { Position::from_json(without); }), HasSubstr("'" + key + "'"));
    Json wrong = good;
    wrong[key] = Json::array();
    EXPECT_THAT(error_of<DataError>([&] { Position::from_json(wrong); }), HasSubstr("'" + key + "'"));
  }
  Json negative = good;
  negative["sequence"] = -1;
  EXPECT_THROW(Position::from_json(negative), DataError);
  EXPECT_THROW(Position::from_json(Json(3)), DataError);
}

}  // namespace
}  // namespace headrace::data
