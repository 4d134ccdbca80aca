// Bytes change, ends go missing and files vanish under a checkpoint that was written well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "headrace/os/file.h"
#include "tests/fault/memory_folder.h"
#include "tests/fault/scenario.h"

namespace headrace::fault {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

struct Damage {
  const char* name;
  std::function<void(const fs::path&)> apply;
};

void flip(const fs::path& path, size_t at) {
  std::string text = os::read_file(path);
  text.at(at) = static_cast<char>(text.at(at) ^ 4);
  store::put_file(path, text);
}

const std::vector<Damage>& damages() {
  static const std::vector<Damage> all = {
      {"one bit of the first byte changed", [](const fs::path& path) { flip(path, 0); }},
      {"one bit in the middle changed", [](const fs::path& path) { flip(path, fs::file_size(path) / 2); }},
      {"one bit of the last byte changed", [](const fs::path& path) { flip(path, fs::file_size(path) - 1); }},
      {"file cut to half", [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) / 2); }},
      {"file one byte short", [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) - 1); }},
      {"file one byte longer", [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) + 1); }},
      {"file emptied", [](const fs::path& path) { fs::resize_file(path, 0); }},
      {"file removed", [](const fs::path& path) { fs::remove(path); }},
      {"file replaced by that of the older checkpoint",
       [](const fs::path& path) {
         const fs::path older = path.parent_path().parent_path() / "step-00000100" / path.filename();
         fs::copy_file(older, path, fs::copy_options::overwrite_existing);
       }},
      {"file replaced by a link to a copy", [](const fs::path& path) {
         fs::rename(path, path.native() + ".copy");
         fs::create_symlink(path.native() + ".copy", path);
       }}};
  return all;
}

TEST(Damage, OfAnyFileIsFoundAndNamedAndTheOlderCheckpointTaken) {
  MemoryFolder folder;
  const Template start({"", [](const fs::path& run) { save(run, 100, kOld), save(run, 200, kNew); }, {}},
                       folder / "start");
  const auto files = store::names_in(folder / "start/checkpoints/step-00000200");
  ASSERT_EQ(files.size(), 5U);
  for (const std::string& file : files) {
    for (const Damage& damage : damages()) {
      SCOPED_TRACE(file + ", " + damage.name);
      const fs::path run = folder / "run";
      start.copy_to(run);
      damage.apply(run / "checkpoints/step-00000200" / file);
      std::vector<store::SkippedCheckpoint> skipped;
      const auto found = store::find_newest_verified(run, skipped);
      ASSERT_TRUE(found);
      EXPECT_EQ(store::difference(*found, store::sample(kOld)), "");
      ASSERT_EQ(skipped.size(), 1U);
      EXPECT_THAT(skipped[0].faults, Contains(HasSubstr("step-00000200/" + file)));
      record(damage.name, "any file of the newest checkpoint", file,
             {"the file is named, the older checkpoint is found", "the newest checkpoint"});
      fs::remove_all(run);
    }
  }
}

TEST(Damage, OfLatestIsOfNoConsequence) {
  MemoryFolder folder;
  const Template start({"", [](const fs::path& run) { save(run, 100, kOld), save(run, 200, kNew); }, {}},
                       folder / "start");
  for (const Damage& damage : damages()) {
    const bool needs_older = std::string(damage.name).find("older") != std::string::npos;
    if (needs_older) continue;
    SCOPED_TRACE(damage.name);
    const fs::path run = folder / "run";
    start.copy_to(run);
    damage.apply(run / "checkpoints/latest");
    std::vector<store::SkippedCheckpoint> skipped;
    const auto found = store::find_newest_verified(run, skipped);
    ASSERT_TRUE(found);
    EXPECT_EQ(store::difference(*found, store::sample(kNew)), "");
    record(damage.name, "the file latest", "latest", {"the newest checkpoint is found", "nothing"});
    expect_clean_after_next_save(run);
    EXPECT_EQ(store::read_latest(run), "step-00000900");
    fs::remove_all(run);
  }
}

}  // namespace
}  // namespace headrace::fault
