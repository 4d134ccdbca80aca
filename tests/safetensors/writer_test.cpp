#include "headrace/safetensors/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/os/file.h"
#include "headrace/os/file_system.h"
#include "headrace/safetensors/model_folder.h"
#include "tests/fault/numbered_files.h"
#include "tests/safetensors/build_file.h"
#include "tests/support/temp_folder.h"

namespace headrace::safetensors {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<PlannedTensor> letters_plan(const std::string& names) {
  std::vector<PlannedTensor> plan;
  for (const char name : names) plan.push_back({std::string(1, name), DType::kU8, {4}});
  return plan;
}

void write_letters(const fs::path& folder, const std::string& names, int64_t max_shard_bytes) {
  Writer writer(folder, letters_plan(names), {.max_shard_bytes = max_shard_bytes});
  for (const char name : names) writer.write(std::string(1, name), bytes_in(std::string(4, name)));
  writer.finish();
}

std::set<std::string> entries(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

// The same tensors in the same order must make the very file that the Python package made.
TEST(Writer, MakesTheReferencesFileByteForByte) {
  const fs::path golden = fs::path(HEADRACE_SOURCE_DIR) / "tests/golden/safetensors/mixed.safetensors";
  const File reference = File::open(golden);
  TempFolder folder;
  std::vector<PlannedTensor> plan;
  for (const TensorInfo& tensor : reference.tensors()) plan.push_back({tensor.name, tensor.dtype, tensor.shape});
  Writer writer(folder.path(), plan);
  for (const TensorInfo& tensor : reference.tensors()) writer.write(tensor.name, reference.bytes(tensor));
  writer.finish();
  EXPECT_TRUE(os::read_file(folder / "model.safetensors") == os::read_file(golden));
  EXPECT_THAT(entries(folder.path()), ElementsAre("model.safetensors"));
}

TEST(Writer, ShardsInPlanOrderWithAnIndexThatNamesEveryTensor) {
  TempFolder folder;
  write_letters(folder.path(), "edcba", 8);
  EXPECT_THAT(entries(folder.path()),
              ElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                          "model-00003-of-00003.safetensors", "model.safetensors.index.json"));
  const ModelFolder model = ModelFolder::open(folder.path());
  EXPECT_THAT(model.names(), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(model.unlisted(), IsEmpty());
  for (const std::string& name : model.names()) EXPECT_EQ(text_in(model.bytes(name)), std::string(4, name[0]));
  const Json index = parse_json(os::read_file(folder / "model.safetensors.index.json"), "test", "index");
  EXPECT_EQ(index["metadata"]["total_size"], 20);
  EXPECT_EQ(index["weight_map"]["e"], "model-00001-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"]["a"], "model-00003-of-00003.safetensors");
}

TEST(Writer, GivesALargeTensorAFileOfItsOwn) {
  TempFolder folder;
  Writer writer(folder.path(), {{"a", DType::kU8, {1}}, {"big", DType::kF32, {100}}, {"z", DType::kU8, {1}}},
                {.max_shard_bytes = 10});
  EXPECT_EQ(writer.file_names().size(), 3U);
  EXPECT_EQ(writer.total_bytes(), 402);
}

TEST(Writer, WritesEmptyTensorsScalarsAndEmptyPlans) {
  TempFolder folder;
  Writer writer(folder.path(), {{"e", DType::kBF16, {0, 5}}, {"s", DType::kF32, {}}, {"t", DType::kU8, {3, 0}}});
  writer.write("e", {});
  writer.write("s", bytes_in("1234"));
  writer.write("t", {});
  writer.finish();
  const ModelFolder model = ModelFolder::open(folder.path());
  EXPECT_EQ(text_in(model.bytes("s")), "1234");
  EXPECT_TRUE(model.bytes("e").empty());
  EXPECT_THAT(model.info("t").shape, ElementsAre(3, 0));
  Writer none(folder / "none", {});
  none.finish();
  EXPECT_THAT(ModelFolder::open(folder / "none").names(), IsEmpty());
}

TEST(Writer, AlignsEachTensorToItsElementInAnyOrderOfWriting) {
  TempFolder folder;
  Writer writer(folder.path(), {{"byte", DType::kU8, {1}}, {"half", DType::kBF16, {1}}, {"whole", DType::kF32, {1}}});
  writer.write("whole", bytes_in("1234"));
  writer.write("byte", bytes_in("1"));
  writer.write("half", bytes_in("12"));
  writer.finish();
  const File file = File::open(folder / "model.safetensors");
  EXPECT_EQ(file.find("whole")->begin % 8, 0);
  EXPECT_EQ(file.find("half")->begin % 2, 0);
  EXPECT_EQ(text_in(file.bytes(*file.find("half"))), "12");
}

TEST(Writer, PublishesNothingBeforeFinishAndCleansUp) {
  TempFolder folder;
  write_letters(folder.path(), "a", 100);
  const std::string before = os::read_file(folder / "model.safetensors");
  {
    Writer writer(folder.path(), letters_plan("ab"));
    writer.write("a", bytes_in("1234"));
    EXPECT_EQ(os::read_file(folder / "model.safetensors"), before);
    EXPECT_THROW(writer.finish(), InternalError);
  }
  EXPECT_EQ(os::read_file(folder / "model.safetensors"), before);
  EXPECT_THAT(entries(folder.path()), ElementsAre("model.safetensors"));
}

TEST(Writer, LeavesNoOlderWeightsThatWouldShadowTheNew) {
  TempFolder folder;
  put_file(folder / "model-00001-of-0000x.safetensors", "not ours");
  write_letters(folder.path(), "ab", 100);
  write_letters(folder.path(), "cd", 4);
  EXPECT_THAT(ModelFolder::open(folder.path()).names(), ElementsAre("c", "d"));
  write_letters(folder.path(), "efg", 4);
  EXPECT_THAT(ModelFolder::open(folder.path()).names(), ElementsAre("e", "f", "g"));
  EXPECT_EQ(entries(folder.path()).size(), 5U);
  write_letters(folder.path(), "h", 100);
  EXPECT_THAT(entries(folder.path()), ElementsAre("model-00001-of-0000x.safetensors", "model.safetensors"));
}

TEST(Writer, RefusesImpossiblePlans) {
  TempFolder folder;
  const auto plan_refused = [&](std::vector<PlannedTensor> plan) {
    EXPECT_THROW(Writer(folder.path(), std::move(plan)), ConfigError);
  };
  plan_refused({{"a", DType::kU8, {1}}, {"a", DType::kU8, {1}}});
  plan_refused({{"", DType::kU8, {1}}});
  plan_refused({{"__metadata__", DType::kU8, {1}}});
  plan_refused({{"a", DType::kU8, {-1}}});
  plan_refused({{"a\xff", DType::kU8, {1}}});
  plan_refused({{"a", DType::kF32, {int64_t{1} << 40, int64_t{1} << 40}}});
  EXPECT_THROW(Writer(folder.path(), {}, {.max_shard_bytes = 0}), ConfigError);
  EXPECT_THAT(entries(folder.path()), IsEmpty());
}

TEST(Writer, RefusesBeforeWritingWhenTheDiskIsTooSmall) {
  TempFolder folder;
  try {
    Writer writer(folder.path(), {{"a", DType::kU8, {int64_t{1} << 55}}});
    FAIL() << "no disk holds 32 PiB";
  } catch (const CapacityError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("the model needs 32768 TiB"));
  }
  EXPECT_THAT(entries(folder.path()), IsEmpty());
}

// A bad disk at any call: the older file or the new one, no error that goes unnoticed, and no temporary file.
TEST(Writer, KeepsTheOlderFileWhenTheDiskFails) {
  for (int64_t at = 0;; ++at) {
    TempFolder folder;
    write_letters(folder.path(), "a", 100);
    fault::NumberedFiles bad({fault::Plan::What::kFail, at, EIO});
    bool has_failed = false;
    {
      const os::FileSystemScope scope(bad);
      try {
        write_letters(folder.path(), "b", 100);
      } catch (const IoError&) {
        has_failed = true;
      }
    }
    const auto names = ModelFolder::open(folder.path()).names();
    EXPECT_TRUE(names == std::vector<std::string>{"b"} || (has_failed && names == std::vector<std::string>{"a"}));
    EXPECT_THAT(entries(folder.path()), ElementsAre("model.safetensors")) << bad.call(at);
    if (at >= bad.num_calls()) break;
  }
}

TEST(Writer, RefusesWhatIsNotPlanned) {
  TempFolder folder;
  Writer writer(folder.path(), letters_plan("a"));
  EXPECT_THROW(writer.write("b", bytes_in("1234")), InternalError);
  EXPECT_THROW(writer.write("a", bytes_in("123")), InternalError);
  writer.write("a", bytes_in("1234"));
  EXPECT_THROW(writer.write("a", bytes_in("1234")), InternalError);
  writer.finish();
}

}  // namespace
}  // namespace headrace::safetensors
