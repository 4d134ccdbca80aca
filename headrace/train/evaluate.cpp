#include "headrace/train/evaluate.h"

#include <cmath>

#include "headrace/train/micro_batch.h"

namespace headrace::train {

double EvaluationResult::loss() const {
  return trained_tokens > 0 ? loss_sum / static_cast<double>(trained_tokens) : 0;
}

double EvaluationResult::perplexity() const { return std::exp(loss()); }

Json EvaluationResult::to_json() const {
  return {{"loss", loss()}, {"perplexity", perplexity()}, {"tokens", trained_tokens}};
}

EvaluationResult evaluate(const model::Model& model, std::span<const model::BlockBuffers> blocks,
                          data::Evaluation& data, const std::function<bool(int64_t done)>& on_batch) {
  EvaluationResult result;
  data.rewind();
  int64_t done = 0;
  while (const auto micro_batch = data.next()) {
    const model::Batch batch = model::to_device(to_model_batch(*micro_batch), blocks.front().weights.device());
    const model::LossResult loss = model::loss_all(model, blocks, batch);
    result.loss_sum += loss.loss_sum;
    result.trained_tokens += loss.trained_tokens;
    if (on_batch && !on_batch(++done)) break;
  }
  return result;
}

}  // namespace headrace::train
