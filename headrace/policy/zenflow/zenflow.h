// The ZenFlow policy: the columns that matter are updated on the device at every step, the others on the host, a window
// of steps at a time, while the device computes on. Paper: "ZenFlow: Enabling Stall-Free Offloading Training via
// Asynchronous Updates", arXiv 2505.12242; docs/zenflow.md says where ours differs. It changes the maths within a
// bound: a deferred gradient is seen at most 2 S steps after it was computed. What it computes follows from the
// settings alone, never from times, unless the update interval follows the host (auto_interval). With every column
// important, or with windows of one step without overlap, it is AdamW bit for bit. Threads: the trainer's is the
// compute lane; one thread a link direction, one a host worker (docs/threads.md).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/graph/executor.h"
#include "headrace/graph/zenflow_step.h"
#include "headrace/policy/compute_lane.h"
#include "headrace/policy/policy.h"
#include "headrace/policy/trained_blocks.h"
#include "headrace/policy/zenflow/column_score.h"
#include "headrace/policy/zenflow/lanes.h"
#include "headrace/policy/zenflow/saved_columns.h"
#include "headrace/policy/zenflow/selective_update.h"
#include "headrace/policy/zenflow/settings.h"
#include "headrace/policy/zenflow/staleness.h"

namespace headrace::policy {

class ZenFlow final : public Policy {
 public:
  // `weights`: one flat fp32 host tensor a block, copied. `model` must outlive the policy. Throws CapacityError when a
  // budget is too small for what lies there for good, ConfigError when settings contradict each other.
  ZenFlow(const model::Model& model, std::unique_ptr<device::Device> device, const std::vector<at::Tensor>& weights,
          ZenFlowSettings settings);
  ~ZenFlow() override;

  // [elements] that a run with these settings takes, before anything is allocated.
  struct Sizes {
    int64_t important = 0, deferred = 0;  // of all blocks
    int64_t ring_buffer = 0;              // one buffer for what goes down or comes up
    int64_t num_ring_buffers = 0;
    int64_t exchange = 0;  // state that may wait to change sides, one way: master alone
  };
  static Sizes sizes_of(const model::Model& model, const ZenFlowSettings& settings);

  // Returns when the important part is updated; the host may still be at work on windows that have ended. After a
  // RunError for a value that is not finite nothing of the step was updated anywhere.
  StepResult step(const StepInput& input) override;
  // Makes blocks() what the next forward will see, no more: windows under way stay under way.
  void finish_updates() override;
  // Ends all windows and applies them.
  void finish_training() override;

  std::span<const model::BlockBuffers> blocks() const override { return lanes_->storage().blocks(); }
  const std::vector<std::string>& trained_parameters() const override { return trained_.parameters; }
  int64_t state_numel() const override { return trained_.state_numel; }
  int64_t saved_bytes() const override;
  std::shared_ptr<memory::Arena> arena() const override { return arena_; }
  // Windows, selection and updates under way are in the state. Restored with another S, k or window sum: a window under
  // way ends at the latest after the new S steps; where other columns would be important, the window under way is
  // applied at once and the columns are chosen by their scores.
  StateCopy begin_save() override;
  void restore(const StateReader& saved, const RestoreOptions& options) override;
  bool write_trace(std::ostream& out) override;
  OrderedJson report() const override;
  OrderedJson step_metrics() const override;

  // The last recorded_steps steps as they ran; waits for the lanes.
  graph::Recording recording();
  int64_t update_interval() const { return schedule_.update_interval(); }
  const zenflow::StalenessGuard& staleness() const { return staleness_; }
  // By block: where each column is and how often it was updated.
  const std::vector<zenflow::BlockColumns>& columns() const { return lanes_->columns(); }
  // [bytes] moved or touched by lanes of this kind since construction.
  int64_t bytes_of(graph::LaneKind lane) const { return lanes_->bytes_of(lane); }
  int64_t exchanged_bytes_of(graph::LaneKind lane) const { return lanes_->exchanged_bytes_of(lane); }
  const memory::Budget& device_budget() const { return *device_budget_; }
  const memory::Budget& host_budget() const { return *host_budget_; }

 private:
  // Of one block, besides its columns.
  struct BlockState {
    explicit BlockState(const zenflow::GradientLedger& empty) : ledger(empty) {}
    std::vector<zenflow::ColumnScore> scores;  // by matrix
    zenflow::GradientLedger ledger;
    std::vector<double> window_rates;                 // learning rates of the window's steps so far
    int64_t window_length = 0;                        // of the update under way
    int64_t updated_by = -1;                          // step number of its host update; -1: none is under way
    int64_t first_number = -1, first_of_update = -1;  // first step number of the window, and of the update under way
    std::vector<std::vector<zenflow::Swap>> adopted;  // to come up before the next forward; by matrix
    bool has_adopted = false;                         // the last step chose columns anew
    double churn = 0;                                 // of the last selection
  };

  // Shares of the gradient's energy [0..1].
  struct Concentration {
    double of_top = 0;          // in as many columns as are important, the best ones
    double of_one_percent = 0;  // in the best 1 % of the columns
    double of_selected = 0;     // in the columns that are important now
  };

  void validate() const;
  int64_t longest_interval() const;
  zenflow::StorageSettings storage_settings() const;
  const std::vector<model::BlockBuffers>& blocks_of_device() const { return lanes_->storage().blocks(); }
  Concentration concentration() const;
  double churn() const;

  // Before a step: the plan and the graph's shape.
  graph::ZenflowShape empty_shape(int32_t micro_batches) const;
  graph::ZenflowShape plan_step(double learning_rate, int32_t micro_batches);
  void new_plan();
  void plan_block(size_t block, double learning_rate, graph::ZenflowBlock& shape);
  void plan_merge(size_t block, graph::Merge merge, int64_t age, graph::ZenflowBlock& shape);
  void plan_adoption(size_t block, graph::ZenflowBlock& shape);
  int64_t update_bytes(size_t block) const;
  zenflow::WindowUpdate plan_update(size_t block) const;
  void run_planned(const graph::StepGraph& graph);
  // After it.
  void end_step();
  void end_window(size_t block);
  void follow_host(const StepResult& result);
  // Between steps, with nothing under way.
  void settle(bool all);
  void end_windows();
  void run_settling(const graph::ZenflowShape& shape);
  // Saved, and restored with nothing under way.
  zenflow::SavedBlock saved_block(size_t block);
  bool is_due_before_forward() const;
  Json block_facts(size_t block) const;
  void restore_schedule(const Json& facts);
  void require_bounded(size_t block) const;
  void restore_scores(size_t block, const StateReader& saved);
  void restore_block(size_t block, const std::vector<zenflow::Sides>& sides, const StateReader& saved);
  void rechoose_block(size_t block, const std::vector<zenflow::Sides>& sides, const StateReader& saved);

  // Tasks of the compute lane.
  void run_compute(const graph::Task& task);
  void split(size_t block, size_t piece, int32_t slot);
  void reduce();
  void take_scores();
  void skip_step();
  std::vector<std::vector<zenflow::Swap>> select(size_t block);
  void update_on_device(size_t block);
  zenflow::DeviceBlock device_block(size_t block);

  const model::Model& model_;
  const ZenFlowSettings settings_;
  const TrainedBlocks trained_;
  const std::shared_ptr<memory::Budget> device_budget_, host_budget_;
  std::shared_ptr<zenflow::Lanes> lanes_;  // all that links and host workers touch
  std::shared_ptr<memory::Arena> arena_;   // activations and workspace; null on a GPU
  std::optional<ComputeLane> compute_;
  std::unique_ptr<zenflow::SelectiveUpdate> selective_;
  zenflow::UpdateSchedule schedule_;
  zenflow::StalenessGuard staleness_;
  const std::shared_ptr<CopyGate> copy_gate_;  // for what the compute lane changes
  std::vector<BlockState> states_;
  std::vector<double> squared_norms_;            // by block, of this step's gradient
  std::shared_ptr<zenflow::StepPlan> plan_;      // of the step under way
  std::vector<zenflow::BlockStep> block_steps_;  // likewise
  StepResult* result_ = nullptr;                 // likewise
  double learning_rate_ = 0;                     // likewise
  bool is_drained_ = true;                       // no task is under way: edges to earlier steps are not needed
  int64_t num_updates_ = 0;                      // steps done
  double host_busy_s_ = 0, device_busy_s_ = 0;   // since the interval was last considered
  int64_t steps_considered_ = 0;                 // likewise
  std::optional<graph::Executor> executor_;      // last: its lanes use all of the above
  int64_t num_steps_ = 0;                        // handed to the executor, settling ones included
};

}  // namespace headrace::policy
