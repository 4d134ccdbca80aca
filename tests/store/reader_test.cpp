#include "headrace/store/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/errors.h"
#include "headrace/os/memory_facts.h"
#include "headrace/store/digest.h"
#include "headrace/store/names.h"
#include "tests/safetensors/build_file.h"
#include "tests/store/sample.h"
#include "tests/support/temp_folder.h"

namespace headrace::store {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A checkpoint of step 1 made of the given files, with a manifest that fits them.
CheckpointInfo made_of(const fs::path& run_folder, const std::vector<std::pair<std::string, std::string>>& files) {
  const fs::path folder = run_folder / "checkpoints" / step_name(1);
  fs::create_directories(folder);
  Manifest manifest{1, "", {}};
  for (const auto& [name, text] : files) {
    store::put_file(folder / name, text);
    manifest.files.push_back({name, static_cast<int64_t>(text.size()), digest_of(text)});
  }
  store::put_file(folder / kManifestName, manifest_text(manifest));
  return read_info(folder, 1);
}

std::string letter_file(const std::string& name) {
  return safetensors::file_of("{" + safetensors::entry(name, "U8", "[1]", 0, 1) + "}", "x");
}

std::string refusal_of(const CheckpointInfo& info) {
  try {
    CheckpointReader::open(info);
  } catch (const DataError& error) {
    return error.what();
  }
  return "opened";
}

TEST(CheckpointReader, GivesStateAndTensors) {
  TempFolder folder;
  const RunLock lock(folder.path());
  const Sample given = sample(3);
  const CheckpointReader reader =
      CheckpointReader::open(*write_checkpoint(lock, 5, given.tensors, given.state, kSmallShards));
  EXPECT_EQ(reader.step(), 5);
  EXPECT_EQ(reader.state(), given.state);
  EXPECT_THAT(reader.names(),
              ElementsAre("count", "large", "layers.0.m", "layers.0.weight", "layers.1.weight", "nothing"));
  EXPECT_EQ(reader.info("layers.0.m").dtype, safetensors::DType::kF32);
  EXPECT_THAT(reader.info("layers.0.weight").shape, ElementsAre(3, 5));
  EXPECT_FALSE(reader.has("layers.0"));
  try {
    reader.bytes("layers.0");
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds no tensor 'layers.0' among its 6"));
  }
}

TEST(CheckpointReader, ViewsSurviveAMoveAndBeingLetGo) {
  TempFolder folder;
  const RunLock lock(folder.path());
  const Sample given = sample(3);
  CheckpointReader first = CheckpointReader::open(*write_checkpoint(lock, 5, given.tensors, given.state, kSmallShards));
  const CheckpointReader reader = std::move(first);
  reader.done_with("large");
  reader.done_with("unknown");
  const auto bytes = reader.bytes("large");
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), given.tensors[3].bytes.begin(), given.tensors[3].bytes.end()));
}

TEST(CheckpointReader, HoldsNothingThatIsNotLookedAt) {
  constexpr int64_t kBytes = 64 << 20;
  TempFolder folder;
  const RunLock lock(folder.path());
  std::vector<std::byte> zeros(kBytes);
  const std::vector<TensorView> tensors = {{"z", safetensors::DType::kU8, {kBytes}, zeros}};
  const auto written = write_checkpoint(lock, 5, tensors, Json::object());
  zeros = {};
  const int64_t before = os::memory_facts().resident_bytes;
  const CheckpointReader reader = CheckpointReader::open(*written);
  EXPECT_LT(os::memory_facts().resident_bytes - before, kBytes / 4);
  EXPECT_EQ(reader.bytes("z").size(), static_cast<size_t>(kBytes));
}

TEST(CheckpointReader, RefusesADamagedCheckpoint) {
  TempFolder folder;
  const CheckpointInfo info = made_of(folder.path(), {{"state.json", "{}"}, {"a.safetensors", letter_file("a")}});
  EXPECT_EQ(refusal_of(info), "opened");
  fs::resize_file(info.folder / "a.safetensors", 3);
  EXPECT_THAT(refusal_of(info), HasSubstr("a.safetensors has 3 bytes"));
  EXPECT_THAT(refusal_of(read_info(info.folder, 1)), HasSubstr("step-00000001 is damaged: "));
}

// The hashes fit what lies there, so only the contents are at fault.
TEST(CheckpointReader, RefusesContentsThatAreNotWhatTheySay) {
  const auto refusal = [](const std::vector<std::pair<std::string, std::string>>& files) {
    TempFolder folder;
    return refusal_of(made_of(folder.path(), files));
  };
  EXPECT_THAT(refusal({{"state.json", "{}"}, {"a.safetensors", letter_file("x")}, {"b.safetensors", letter_file("x")}}),
              HasSubstr("tensor 'x' lies both in"));
  EXPECT_THAT(refusal({{"state.json", "{}"}, {"a.safetensors", "no header"}}), HasSubstr("[safetensors.open]"));
  EXPECT_THAT(refusal({{"state.json", "{"}}), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal({{"state.json", std::string(200, '[') + std::string(200, ']')}}), HasSubstr("nested deeper"));
  EXPECT_EQ(refusal({{"state.json", "{}"}, {"notes.txt", "free text"}}), "opened");
}

TEST(CheckpointReader, RefusesAHugeState) {
  TempFolder folder;
  const CheckpointInfo small = made_of(folder.path(), {{"state.json", "{}"}});
  fs::resize_file(small.folder / kStateName, uintmax_t{1} << 40);
  const Manifest manifest{1, "", {{"state.json", int64_t{1} << 40, std::string(32, '0')}}};
  store::put_file(small.folder / kManifestName, manifest_text(manifest));
  EXPECT_THAT(refusal_of(read_info(small.folder, 1)), HasSubstr("state.json: has 1099511627776 bytes; at most"));
}

}  // namespace
}  // namespace headrace::store
