// ZenFlow written out plainly, element by element, as docs/zenflow.md describes it: no lanes, no compact buffers, no
// positions. Gradients come from the resident policy at the weights that a forward would see.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "headrace/kernel/adamw_constants.h"
#include "headrace/kernel/channels.h"
#include "headrace/policy/resident.h"
#include "headrace/policy/zenflow/column_score.h"
#include "headrace/policy/zenflow/schedule.h"
#include "headrace/policy/zenflow/selection.h"
#include "headrace/policy/zenflow/settings.h"

namespace headrace::policy::zenflow {

class Reference {
 public:
  Reference(const model::Model& model, const std::vector<at::Tensor>& weights, const ZenFlowSettings& settings)
      : model_(model),
        settings_(settings),
        schedule_(settings.schedule, static_cast<int32_t>(model.num_blocks())),
        gradients_(model, copies(weights), {settings.optimizer, settings.recompute, settings.is_frozen}) {
    for (size_t b = 0; b < weights.size(); ++b) blocks_.push_back(make_block(model.blocks()[b], weights[b], b));
  }

  StepResult step(const StepInput& input) {
    const std::vector<BlockStep> steps = schedule_.next();
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (steps[b].merges_before) merge(blocks_[b]);
      at::Tensor(gradients_.blocks()[b].weights).copy_(blocks_[b].seen);
    }
    const StepResult result = gradients_.step({input.step, input.micro_batches, 0.0});
    for (size_t b = 0; b < blocks_.size(); ++b) finish(blocks_[b], b, steps[b], input.learning_rate, result);
    return result;
  }

  // What the next forward would see.
  std::vector<at::Tensor> weights() {
    const std::vector<int64_t> due = UpdateSchedule(schedule_).settle(false);
    std::vector<at::Tensor> seen;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      Block block = blocks_[b];
      block.seen = blocks_[b].seen.clone();
      if (due[b] > 0) merge(block);
      seen.push_back(block.seen);
    }
    return seen;
  }

  std::vector<at::Tensor> finish() {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      merge(blocks_[b]);
      if (!blocks_[b].window.empty()) flush(blocks_[b]);
      merge(blocks_[b]);
    }
    return weights_as_seen();
  }

  int64_t updates(size_t block, size_t matrix, size_t channel) const {
    return blocks_[block].matrices[matrix].updates[channel];
  }

 private:
  struct Matrix {
    const model::ParameterSpec* spec;
    int64_t channels = 0, others = 0;  // elements of a channel
    std::vector<bool> is_important = {};
    std::vector<int64_t> updates = {};
    ColumnScore score{0};
    int64_t at(int64_t channel, int64_t i) const {
      const bool is_rows = spec->layout == model::Layout::kInOut;
      return spec->offset + (is_rows ? channel * others + i : i * channels + channel);
    }
  };
  struct Past {
    at::Tensor gradient;
    float clip_factor;
    int64_t tokens;
    double rate;
  };
  struct Block {
    at::Tensor seen, host, m, v;  // whole flat buffers; host: masters of deferred columns
    std::vector<Matrix> matrices;
    std::vector<const model::ParameterSpec*> vectors;
    int64_t vector_updates = 0;
    std::vector<Past> window = {};
  };

  static std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> result;
    for (const at::Tensor& tensor : tensors) result.push_back(tensor.clone());
    return result;
  }

  Block make_block(const model::BlockSpec& spec, const at::Tensor& weights, size_t index) {
    Block block{weights.clone(), weights.clone(), at::zeros_like(weights), at::zeros_like(weights), {}, {}};
    for (const model::ParameterSpec& parameter : spec.parameters) {
      if (settings_.is_frozen && settings_.is_frozen(parameter.name)) continue;
      if (parameter.layout == model::Layout::kVector) {
        block.vectors.push_back(&parameter);
        continue;
      }
      Matrix matrix{&parameter};
      const bool is_rows = parameter.layout == model::Layout::kInOut;
      matrix.channels = is_rows ? parameter.shape.front() : parameter.shape.back();
      matrix.others = parameter.numel / matrix.channels;
      const bool on_device = static_cast<int32_t>(index) < settings_.num_device_blocks;
      const int64_t top = num_important(on_device ? 1 : settings_.topk_ratio, matrix.channels);
      for (int64_t c = 0; c < matrix.channels; ++c) matrix.is_important.push_back(c < top);
      matrix.updates.assign(static_cast<size_t>(matrix.channels), 0);
      matrix.score = ColumnScore(matrix.channels);
      block.matrices.push_back(std::move(matrix));
    }
    return block;
  }

  template <class Body>
  static void for_elements(Block& block, bool of_important, const Body& body) {
    for (Matrix& matrix : block.matrices) {
      for (int64_t c = 0; c < matrix.channels; ++c) {
        if (matrix.is_important[static_cast<size_t>(c)] != of_important) continue;
        for (int64_t i = 0; i < matrix.others; ++i) body(matrix, static_cast<size_t>(c), matrix.at(c, i));
      }
    }
  }

  static void merge(Block& block) {
    for_elements(block, false, [&](Matrix&, size_t, int64_t at) {
      block.seen.data_ptr<float>()[at] = block.host.data_ptr<float>()[at];
    });
  }

  // kernel/adamw.h's arithmetic, in its order.
  static void update(at::Tensor& master, Block& block, int64_t at, float gradient,
                     const kernel::StepConstants& constants) {
    const auto& [c, correction, scale] = constants;
    float &w = master.data_ptr<float>()[at], &m = block.m.data_ptr<float>()[at], &v = block.v.data_ptr<float>()[at];
    const float g = gradient * scale;
    m = m * c.beta1 + g * c.one_minus_beta1;
    v = v * c.beta2 + g * g * c.one_minus_beta2;
    w = w * c.keep - m * correction.step_size / (std::sqrt(v) * correction.second_correction + c.epsilon);
  }

  kernel::AdamWStep adamw(double rate, bool decays) const {
    const OptimizerSettings& o = settings_.optimizer;
    return {.learning_rate = rate,
            .beta1 = o.beta1,
            .beta2 = o.beta2,
            .epsilon = o.epsilon,
            .weight_decay = decays ? o.weight_decay : 0};
  }

  void update_important(Block& block, const at::Tensor& gradients, double rate, float clip_factor) {
    const auto* g = gradients.const_data_ptr<float>();
    ++block.vector_updates;
    for (const model::ParameterSpec* vector : block.vectors) {
      kernel::AdamWStep step = adamw(rate, vector->decays);
      step.step = block.vector_updates;
      step.gradient_scale = clip_factor;
      const kernel::StepConstants constants = kernel::constants_of(step);
      for (int64_t i = vector->offset; i < vector->offset + vector->numel; ++i) {
        update(block.seen, block, i, g[i], constants);
      }
    }
    for_elements(block, true, [&](Matrix& matrix, size_t channel, int64_t at) {
      kernel::AdamWStep step = adamw(rate, matrix.spec->decays);
      step.step = matrix.updates[channel] + 1;
      step.gradient_scale = clip_factor;
      update(block.seen, block, at, g[at], kernel::constants_of(step));
    });
    count(block, true);
  }

  static void count(Block& block, bool of_important) {
    for (Matrix& matrix : block.matrices) {
      for (size_t c = 0; c < matrix.updates.size(); ++c) matrix.updates[c] += matrix.is_important[c] == of_important;
    }
  }

  // Decay comes once a step of the window, the rate is their mean.
  void flush(Block& block) {
    const std::vector<Past>& window = block.window;
    const double first = static_cast<double>(window.front().tokens);
    double rate = 0, decay = 1, tokens = 0;
    for (const Past& past : window) {
      rate += past.rate;
      decay *= 1 - past.rate * settings_.optimizer.weight_decay;
      tokens += static_cast<double>(past.tokens);
    }
    const auto steps = static_cast<double>(window.size());
    rate /= steps;
    if (settings_.deferred_rate == DeferredRate::kSqrt) rate *= std::sqrt(steps);
    if (settings_.deferred_rate == DeferredRate::kLinear) rate *= steps;
    for_elements(block, false, [&](Matrix& matrix, size_t channel, int64_t at) {
      float sum = 0;
      for (size_t i = 0; i < window.size(); ++i) {
        const float weight = static_cast<float>(static_cast<double>(window[i].tokens) / first);
        const float part = window[i].gradient.const_data_ptr<float>()[at] * (window[i].clip_factor * weight);
        sum = i == 0 ? part : sum + part;
      }
      kernel::AdamWStep step = adamw(rate, false);
      step.step = matrix.updates[channel] + 1;
      step.gradient_scale = static_cast<float>(first / tokens);
      kernel::StepConstants constants = kernel::constants_of(step);
      if (matrix.spec->decays) constants.adamw.keep = static_cast<float>(decay);
      update(block.host, block, at, sum, constants);
    });
    count(block, false);
    block.window.clear();
  }

  void select(Block& block) {
    for (Matrix& matrix : block.matrices) {
      std::vector<int32_t> important, deferred;
      for (int32_t c = 0; c < matrix.channels; ++c) {
        (matrix.is_important[static_cast<size_t>(c)] ? important : deferred).push_back(c);
      }
      for (const Swap& swap : reselect(matrix.score.smoothed(), important, deferred, settings_.select_margin)) {
        const int32_t leaves = important[static_cast<size_t>(swap.important)];
        const int32_t comes = deferred[static_cast<size_t>(swap.deferred)];
        matrix.is_important[static_cast<size_t>(leaves)] = false;
        matrix.is_important[static_cast<size_t>(comes)] = true;
        for (int64_t i = 0; i < matrix.others; ++i) {
          auto *seen = block.seen.data_ptr<float>(), *host = block.host.data_ptr<float>();
          host[matrix.at(leaves, i)] = seen[matrix.at(leaves, i)];
          seen[matrix.at(comes, i)] = host[matrix.at(comes, i)];
        }
      }
    }
  }

  void finish(Block& block, size_t index, const BlockStep& step, double rate, const StepResult& result) {
    if (step.merges_after) merge(block);
    if (result.skipped.empty()) enter(block, gradients_.blocks()[index].gradients, rate, result);
    if (!step.flushes || block.window.empty()) return;
    flush(block);
    if (step.selects) select(block);
  }

  void enter(Block& block, const at::Tensor& gradients, double rate, const StepResult& result) {
    for (Matrix& matrix : block.matrices) {
      const bool is_rows = matrix.spec->layout == model::Layout::kInOut;
      const kernel::MatrixShape shape{is_rows ? matrix.channels : matrix.others,
                                      is_rows ? matrix.others : matrix.channels,
                                      is_rows ? kernel::Axis::kRows : kernel::Axis::kColumns};
      kernel::add_channel_scores(
          {gradients.const_data_ptr<float>() + matrix.spec->offset, static_cast<size_t>(matrix.spec->numel)}, shape,
          {0, shape.rows}, matrix.score.step());
      matrix.score.end_step();
    }
    update_important(block, gradients, rate, result.clip_factor);
    block.window.push_back({gradients.clone(), result.clip_factor, result.trained_tokens, rate});
  }

  std::vector<at::Tensor> weights_as_seen() const {
    std::vector<at::Tensor> seen;
    for (const Block& block : blocks_) seen.push_back(block.seen);
    return seen;
  }

  const model::Model& model_;
  const ZenFlowSettings settings_;
  UpdateSchedule schedule_;
  Resident gradients_;
  std::vector<Block> blocks_;
};

}  // namespace headrace::policy::zenflow
