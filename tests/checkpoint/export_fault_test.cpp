// The disk is full or bad, the process dies or the power goes at each call of an export.
#include <gtest/gtest.h>

#include "headrace/checkpoint/export.h"
#include "headrace/model/init.h"
#include "headrace/os/file.h"
#include "headrace/tensor/torch.h"
#include "tests/fault/each_call.h"
#include "tests/fault/model_files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_model.h"

namespace headrace::checkpoint {
namespace {

namespace fs = std::filesystem;

class ExportFault : public ::testing::Test {
 protected:
  ExportFault() : model_(support::tiny_model()) {
    for (const model::BlockSpec& block : model_.blocks()) {
      flat_.push_back(at::empty({block.numel}));
      model::initialize(block, 3, flat_.back());
    }
  }
  void export_to(const fs::path& run) {
    fault::put_model(run / "source", "source");
    export_model(run / "source", run / "out", model_, flat_, ExportDtype::kFloat32);
  }
  // `before`: what lies in the place where the export goes.
  fault::Trial trial(const std::string& where, const std::function<void(const fs::path&)>& before,
                     bool can_exchange = true) {
    TempFolder folder;
    export_to(folder.path());
    new_ = fault::model_files(folder / "out");
    return {.where = "an export: " + where,
            .before =
                [before](const fs::path& run) {
                  fs::create_directories(run);
                  before(run);
                },
            .act = [this](const fs::path& run) { export_to(run); },
            .look = [this](const fs::path& run,
                           bool is_done) { return fault::look_at_model(run / "out", old_, new_, is_done); },
            .after =
                [this](const fs::path& run) {
                  export_to(run);
                  EXPECT_EQ(fault::model_files(run / "out"), new_);
                  EXPECT_FALSE(fs::exists(run / "out.partial"));
                },
            .can_exchange = can_exchange};
  }
  void replace(bool can_exchange) {
    const auto before = [this](const fs::path& run) {
      for (at::Tensor& flat : flat_) flat.neg_();
      export_to(run);
      for (at::Tensor& flat : flat_) flat.neg_();
      old_ = fault::model_files(run / "out");
    };
    fault::EachCall calls(trial("over an earlier one", before, can_exchange));
    calls.with_a_bad_disk();
    calls.with_a_death();
    calls.with_a_power_loss();
  }

  const model::Model model_;
  std::vector<at::Tensor> flat_;
  fault::ModelFiles old_, new_;
};

TEST_F(ExportFault, OfAFirstOneLeavesAllOfItOrNothing) {
  fault::EachCall calls(trial("a first one", [](const fs::path&) {}));
  calls.with_a_bad_disk();
  calls.with_a_death();
  calls.with_a_power_loss();
}

TEST_F(ExportFault, OfASecondOneLeavesOneOfThem) { replace(true); }

TEST_F(ExportFault, WithoutTheCallThatSwapsLeavesOneOfThemOrNone) { replace(false); }

}  // namespace
}  // namespace headrace::checkpoint
