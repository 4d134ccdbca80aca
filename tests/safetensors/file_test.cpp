#include "headrace/safetensors/file.h"

#include <gtest/gtest.h>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/os/file.h"
#include "tests/safetensors/build_file.h"
#include "tests/support/temp_folder.h"

namespace headrace::safetensors {
namespace {

const std::filesystem::path kGolden = std::filesystem::path(HEADRACE_SOURCE_DIR) / "tests/golden/safetensors";

std::string hex_of(std::span<const std::byte> bytes) {
  std::string hex;
  for (const std::byte byte : bytes) {
    hex += "0123456789abcdef"[std::to_integer<int>(byte) >> 4];
    hex += "0123456789abcdef"[std::to_integer<int>(byte) & 15];
  }
  return hex;
}

TEST(File, ReadsWhatTheReferenceWrote) {
  const File file = File::open(kGolden / "mixed.safetensors");
  const Json expected = parse_json(os::read_file(kGolden / "mixed.json"), "test", "mixed.json")["tensors"];
  EXPECT_EQ(file.tensors().size(), expected.size());
  for (const auto& [name, tensor] : expected.items()) {
    const TensorInfo* info = file.find(name);
    ASSERT_NE(info, nullptr) << name;
    EXPECT_EQ(info->shape, tensor["shape"].get<std::vector<int64_t>>()) << name;
    EXPECT_EQ(hex_of(file.bytes(*info)), tensor["hex"].get<std::string>()) << name;
  }
  EXPECT_EQ(file.find("bf16")->dtype, DType::kBF16);
  EXPECT_EQ(file.find("fp8")->dtype, DType::kF8E4M3);
  EXPECT_EQ(file.metadata().at("format"), "pt");
}

TEST(File, FindsNothingUnderOtherNames) {
  const File file = File::open(kGolden / "mixed.safetensors");
  for (const std::string name : {"", "fp", "fp322", "zzz", "__metadata__"}) EXPECT_EQ(file.find(name), nullptr) << name;
}

TEST(File, ViewsSurviveAMove) {
  TempFolder folder;
  put_file(folder / "x", file_of("{" + entry("a", "U8", "[3]", 0, 3) + "}", "abc"));
  File file = File::open(folder / "x");
  const TensorInfo* info = file.find("a");
  const File moved = std::move(file);
  EXPECT_EQ(moved.find("a"), info);
  EXPECT_EQ(text_in(moved.bytes(*info)), "abc");
  moved.done_with(*info);
  EXPECT_EQ(text_in(moved.bytes(*info)), "abc");
}

TEST(File, NamesTheFileThatIsWrong) {
  TempFolder folder;
  EXPECT_THROW(File::open(folder / "none"), IoError);
  put_file(folder / "empty", "");
  EXPECT_THROW(File::open(folder / "empty"), DataError);
}

}  // namespace
}  // namespace headrace::safetensors
