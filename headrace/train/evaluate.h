// Loss on held-out data. One thread and libtorch's intra-op threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "headrace/base/json.h"
#include "headrace/data/evaluation.h"
#include "headrace/model/run.h"

namespace headrace::train {

struct EvaluationResult {
  double loss_sum = 0;         // [nats]
  int64_t trained_tokens = 0;  // tokens whose prediction was scored

  double loss() const;        // [nats a token]; 0 without tokens
  double perplexity() const;  // exp(loss)
  Json to_json() const;       // {"loss", "perplexity", "tokens"}
};

// Runs over all of `data` from its start. `on_batch` is called after each micro-batch with how many are done; returning
// false stops early and gives the result so far.
EvaluationResult evaluate(const model::Model& model, std::span<const model::BlockBuffers> blocks,
                          data::Evaluation& data, const std::function<bool(int64_t done)>& on_batch = {});

}  // namespace headrace::train
