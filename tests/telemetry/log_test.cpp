#include "headrace/telemetry/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "tests/support/temp_folder.h"

namespace headrace::telemetry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Log, KeepsWithTheTimeAndShowsWithout) {
  TempFolder folder;
  std::vector<std::string> shown;
  Log log(folder / "run.log", [&](std::string_view line) { shown.emplace_back(line); });
  log.info("one");
  log.warn("two");
  log.detail("three");
  EXPECT_THAT(shown, ElementsAre("one", "warning: two"));
  const std::string stamp = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ )";
  const std::regex expected(stamp + "one\n" + stamp + "warning: two\n" + stamp + "three\n");
  EXPECT_TRUE(std::regex_match(os::read_file(folder / "run.log"), expected)) << os::read_file(folder / "run.log");
}

TEST(Log, ContinuesAnOlderFile) {
  TempFolder folder;
  Log(folder / "run.log", nullptr).info("first");
  Log(folder / "run.log", nullptr).info("second");
  EXPECT_THAT(os::read_file(folder / "run.log"), HasSubstr("first"));
}

TEST(Log, AFullDiskIsSaidOnceAndEndsNothing) {
  std::vector<std::string> shown;
  Log log("/dev/full", [&](std::string_view line) { shown.emplace_back(line); });
  log.info("one");
  log.info("two");
  EXPECT_THAT(shown, ElementsAre(HasSubstr("the log ends here"), "one", "two"));
}

TEST(Log, WorksWithoutFileOrScreen) {
  EXPECT_NO_THROW(Log(nullptr).info("nobody hears"));
  EXPECT_THROW(Log("/no/such/folder/log", nullptr), IoError);
}

}  // namespace
}  // namespace headrace::telemetry
