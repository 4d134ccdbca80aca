#include "headrace/telemetry/tensorboard.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "headrace/telemetry/crc32c.h"
#include "tests/support/temp_folder.h"

namespace headrace::telemetry {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, GivesThePublishedValues) {
  std::string up, down;
  for (int i = 0; i < 32; ++i) {
    up += static_cast<char>(i);
    down += static_cast<char>(31 - i);
  }
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c(up), 0x46dd794eU);
  EXPECT_EQ(crc32c(down), 0x113fdb5cU);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(""), 0U);
}

// The same events as tools/make_tensorboard_golden.py.
TEST(TensorBoard, EncodesWhatTheReferenceEncodes) {
  std::string bytes = frame_record(encode_version_event(1700000000.25));
  bytes += frame_record(encode_scalar_event("train/loss", 0, 2.5F, 1700000001.5));
  bytes += frame_record(encode_scalar_event("train/loss", 1, 2.25F, 1700000002.5));
  bytes += frame_record(encode_scalar_event("eval/perplexity", 300, 1e30F, 1700000003.5));
  bytes += frame_record(encode_scalar_event("имя", int64_t{1} << 40, -0.0F, 1700000004.5));
  const std::string golden = std::string(HEADRACE_SOURCE_DIR) + "/tests/golden/telemetry/scalars.tfevents";
  EXPECT_TRUE(bytes == os::read_file(golden));
}

// tests/python/test_tensorboard.py runs this with a folder and reads the result with the `tensorboard` package.
TEST(TensorBoard, WritesAFileThatGrowsWithEachScalar) {
  TempFolder scratch;
  const char* given = std::getenv("HEADRACE_TEST_OUT");
  const std::filesystem::path folder = given != nullptr ? std::filesystem::path(given) : scratch / "new/folder";
  TensorBoardWriter writer(folder, 1700000000.25);
  auto before = std::filesystem::file_size(writer.path());
  EXPECT_GT(before, 0U);
  for (int step = 1; step <= 300; ++step) {
    writer.add_scalar("train/loss", step, 10.0F / static_cast<float>(step), 1700000000.25 + step);
    EXPECT_GT(std::filesystem::file_size(writer.path()), before) << "a killed run must keep what it wrote";
    before = std::filesystem::file_size(writer.path());
  }
  EXPECT_TRUE(writer.path().filename().native().starts_with("events.out.tfevents.1700000000."));
}

TEST(TensorBoard, TwoWritersNeverShareAFile) {
  TempFolder folder;
  const TensorBoardWriter one(folder.path(), 1), two(folder.path(), 1);
  EXPECT_NE(one.path(), two.path());
}

TEST(TensorBoard, SaysWhichFolderCannotBeMade) {
  EXPECT_THROW(TensorBoardWriter("/proc/none/tensorboard", 1), IoError);
}

}  // namespace
}  // namespace headrace::telemetry
