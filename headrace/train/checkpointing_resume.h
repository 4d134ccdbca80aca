// From a checkpoint back to a run: which one, whether this run's settings continue it, and its tensors for a policy.
// Blocking; the trainer thread.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/config/train_config.h"
#include "headrace/data/position.h"
#include "headrace/model/model.h"
#include "headrace/policy/state.h"
#include "headrace/store/reader.h"
#include "headrace/store/verify.h"

namespace headrace::train {

using Say = std::function<void(const std::string&)>;

// The newest checkpoint of a run folder that verifies, or the checkpoint itself where `path` is one. What was newer and
// is damaged is said. Throws DataError when there are checkpoints and none verifies; empty when there are none.
std::optional<store::CheckpointInfo> find_checkpoint(const std::filesystem::path& path, const Say& say);

// What config.resume asks for; empty: begin at the start. Throws ConfigError when there is nothing at a named path, or
// when going on from an older checkpoint of OUT would leave newer ones behind.
std::optional<store::CheckpointInfo> find_resumed(const config::TrainConfig& config, const Say& say);

// What state.json says besides the policy's facts.
struct ResumedRun {
  Json config;  // as config::to_json, with the policy that was chosen
  data::Position position;
  int64_t step = 0, tokens = 0, trained_tokens = 0, total_steps = 0, skipped_steps = 0;
  double final_loss = 0;
};
// Throws DataError naming what is missing, wrong or of a later format.
ResumedRun read_resumed(const Json& state);

// Settings that differ from the saved run's in what changes the numbers: "lr: 0.001 was 0.002". Where tensors lie, how
// many work on them and how long the run lasts do not.
std::vector<std::string> changed_settings(const config::TrainConfig& config, const Json& saved);
// Throws ConfigError with the list, unless config.resume_changed: then it says it.
void require_same_settings(const config::TrainConfig& config, const Json& saved, const Say& say);

// The tensors of a checkpoint as a policy reads them. The reader must outlive it.
class CheckpointState final : public policy::StateReader {
 public:
  // Throws DataError when state.json has no facts of a policy.
  explicit CheckpointState(const store::CheckpointReader& reader);
  std::optional<policy::StateTensor> find(const std::string& name) const override;
  void done_with(const std::string& name) const override { reader_.done_with(name); }
  const Json& facts() const override { return facts_; }

 private:
  const store::CheckpointReader& reader_;
  const Json& facts_;
};

// The masters of a checkpoint: one flat fp32 tensor a block. Throws DataError.
std::vector<at::Tensor> read_masters(const store::CheckpointReader& reader, const model::Model& model);

}  // namespace headrace::train
