// The offload policy: masters, moments and the optimizer's work on the host, forward and backward on the device, and
// (with Overlap::kExact) nothing waits for more than it must. Bitwise equal to the resident policy, whatever the
// placement, pieces, lane rates, workers and overlap; but for the two relaxed ways to clip, which are named as such.
// Source of the baseline: ZeRO-Offload, arXiv 2101.06840; of layer-major accumulation: Cephalo, arXiv 2411.01075.
// Threads: the trainer's is the compute lane; one thread a link direction, one a host worker (docs/threads.md).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/graph/executor.h"
#include "headrace/graph/step_graph.h"
#include "headrace/memory/arena.h"
#include "headrace/policy/compute_lane.h"
#include "headrace/policy/exact_state.h"
#include "headrace/policy/offload_lanes.h"
#include "headrace/policy/offload_settings.h"
#include "headrace/policy/policy.h"
#include "headrace/policy/trained_blocks.h"

namespace headrace::policy {

class Offload final : public Policy {
 public:
  // `weights`: one flat fp32 host tensor a block, copied. `model` must outlive the policy. Throws CapacityError when a
  // budget is too small for what lies there for good, ConfigError when settings contradict each other.
  Offload(const model::Model& model, std::unique_ptr<device::Device> device, const std::vector<at::Tensor>& weights,
          OffloadSettings settings);
  ~Offload() override;

  // Returns when the last block's backward has ended; updates may still be under way, the next step waits for them
  // block by block. With clipping off or relaxed and skips_non_finite off, blocks whose update had begun when a
  // RunError came are updated.
  StepResult step(const StepInput& input) override;
  void finish_updates() override;

  std::span<const model::BlockBuffers> blocks() const override { return lanes_->storage().blocks(); }
  const std::vector<std::string>& trained_parameters() const override { return trained_.parameters; }
  int64_t state_numel() const override { return trained_.state_numel; }
  std::shared_ptr<memory::Arena> arena() const override { return arena_; }
  StateCopy begin_save() override;
  void restore(const StateReader& saved, const RestoreOptions& options) override;
  bool write_trace(std::ostream& out) override;
  OrderedJson report() const override;

  // First blocks whose optimizer state is on the device.
  int32_t num_device_blocks() const { return num_device_blocks_; }
  // The last recorded_steps steps as they ran; waits for all updates.
  graph::Recording recording();
  // The graph that a step of so many micro-batches follows.
  const graph::StepGraph& graph_of(int32_t micro_batches);
  graph::StepShape shape_of(int32_t micro_batches) const;

  // [bytes] moved or touched by lanes of this kind since construction.
  int64_t bytes_of(graph::LaneKind lane) const { return lanes_->bytes_of(lane); }
  const memory::Budget& device_budget() const { return *device_budget_; }
  const memory::Budget& host_budget() const { return *host_budget_; }

 private:
  void validate() const;
  void start_lanes();
  void choose_device_share(const StepResult& result);
  bool clips_by_global_norm() const;
  bool has_gate() const;
  double gradient_norm() const;
  ExactBlock exact_block(size_t block);
  void run_compute(const graph::Task& task);
  void complete_gradient(size_t block);
  void reduce();
  void update_on_device(size_t block);
  bool sends_needed_rows_first() const;
  Pieces embedding_pieces(const StepInput& input);
  void require_promised_rows(const StepInput& input);
  [[noreturn]] void throw_non_finite(const StepInput& input);

  const model::Model& model_;
  const OffloadSettings settings_;
  const TrainedBlocks trained_;
  const std::shared_ptr<memory::Budget> device_budget_, host_budget_;
  const std::shared_ptr<CopyGate> copy_gate_;  // for what the compute lane changes
  graph::StepShape shape_;                     // with one micro-batch: blocks and their pieces
  std::shared_ptr<OffloadLanes> lanes_;        // all that links and host workers touch
  std::vector<int64_t> promised_rows_;         // of the embedding: those that the step before sent first
  bool has_promised_rows_ = false;
  std::shared_ptr<memory::Arena> arena_;  // activations and workspace
  std::optional<ComputeLane> compute_;
  std::map<std::pair<int32_t, bool>, graph::StepGraph> graphs_;  // by micro-batches and has_gate()
  std::vector<double> squared_norms_;                            // by block, of this step's gradient
  StepResult* result_ = nullptr;                                 // of the step under way
  double last_norm_ = -1;                                        // of the step before; negative: there was none
  int64_t num_steps_ = 0;                                        // run here, those that updated nothing included
  int64_t first_step_ = 0;  // num_steps_ when the lanes were started, from which they count
  int32_t num_device_blocks_ = 0;
  int64_t num_updates_ = 0;                  // of every trained element so far
  int64_t num_restored_ = 0;                 // of them, before this policy was there
  std::optional<graph::Executor> executor_;  // last: its lanes use all of the above
};

}  // namespace headrace::policy
