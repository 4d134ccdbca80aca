// The disk is full or bad, the process dies or the power goes at each call by which a run puts its finished model where
// it is found, and at each call by which --overwrite takes an earlier run away.
#include <gtest/gtest.h>

#include <fstream>

#include "headrace/train/run_folder.h"
#include "tests/fault/each_call.h"
#include "tests/fault/model_files.h"

namespace headrace::train {
namespace {

namespace fs = std::filesystem;

config::TrainConfig config_of(const fs::path& run) {
  config::TrainConfig config;
  config.out = run;
  config.overwrite = true;
  config.tensorboard = false;
  return config;
}

void put_old_model(const fs::path& folder) {
  fault::put_model(folder, "old");
  std::ofstream(folder / "model.safetensors") << "old";
}

// In other files than the old one: a reader prefers a single file to an index.
void put_new_model(const fs::path& folder) {
  fault::put_model(folder, "new");
  for (const char* name : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}) {
    std::ofstream(folder / name) << "new";
  }
  std::ofstream(folder / "model.safetensors.index.json") << "{}";
}

fault::ModelFiles files_of(void (*put)(const fs::path&)) {
  const fault::MemoryFolder folder;
  put(folder / "model");
  return fault::model_files(folder / "model");
}

// A run that went on to its end in a folder that holds the model of when it was interrupted.
fault::Trial publication() {
  return {.where = "the end of a run, where it publishes its model",
          .before =
              [](const fs::path& run) {
                put_old_model(run);
                std::ofstream(run / "run_config.json") << "{}";
                std::ofstream(run / "metrics.jsonl") << "";
              },
          .act =
              [](const fs::path& run) {
                RunFolder folder(config_of(run), {}, {}, 0);
                put_new_model(run / ".model");
                folder.publish_model(run / ".model");
              },
          .look =
              [](const fs::path& run, bool is_done) {
                return fault::look_at_model(run, files_of(put_old_model), files_of(put_new_model), is_done);
              },
          .after =
              [](const fs::path& run) {
                EXPECT_TRUE(is_run(run)) << "it can go on";
                RunFolder folder(config_of(run), {}, {}, 0);
                for (const auto& entry : fs::directory_iterator(run)) {
                  EXPECT_NE(entry.path().filename().native().front(), '.') << entry.path();
                }
              }};
}

TEST(PublishFault, ABadDiskLeavesOneModelOrNone) { fault::EachCall(publication()).with_a_bad_disk(); }

TEST(PublishFault, ADeathLeavesOneModelOrNone) { fault::EachCall(publication()).with_a_death(); }

// The new model is written and synced by then (tests/checkpoint/export_fault_test.cpp).
TEST(PublishFault, APowerLossLeavesOneModelOrNone) {
  fault::Trial trial = publication();
  trial.before = [before = trial.before](const fs::path& run) {
    before(run);
    put_new_model(run / "made");
  };
  trial.act = [](const fs::path& run) {
    RunFolder folder(config_of(run), {}, {}, 0);
    folder.publish_model(run / "made");
  };
  fault::EachCall(std::move(trial)).with_a_power_loss();
}

fault::Trial replacement() {
  fault::Trial trial = publication();
  trial.where = "the start of a run with --overwrite";
  trial.act = [](const fs::path& run) { RunFolder(config_of(run), {}, {}); };
  trial.look = [](const fs::path& run, bool) -> fault::Outcome {
    const fault::ModelFiles found = fault::model_files(run);
    EXPECT_TRUE(found.empty() || found == files_of(put_old_model)) << "half of a model is seen";
    return {found.empty() ? "no model is seen" : "the earlier model is seen, whole",
            found.empty() ? "the run that was to be replaced" : "nothing"};
  };
  trial.after = [](const fs::path& run) {
    EXPECT_TRUE(is_run(run) || is_unfinished(run)) << "it can be begun again";
    RunFolder(config_of(run), {}, {});
    EXPECT_TRUE(is_run(run));
  };
  return trial;
}

TEST(PublishFault, ABadDiskWhileOverwritingLeavesNoHalfModel) { fault::EachCall(replacement()).with_a_bad_disk(); }

TEST(PublishFault, ADeathWhileOverwritingLeavesNoHalfModel) { fault::EachCall(replacement()).with_a_death(); }

TEST(PublishFault, APowerLossWhileOverwritingLeavesNoHalfModel) { fault::EachCall(replacement()).with_a_power_loss(); }

}  // namespace
}  // namespace headrace::train
