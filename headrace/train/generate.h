// Text from a model, token by token: greedy or sampled. One thread and libtorch's intra-op threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "headrace/base/rng.h"
#include "headrace/model/run.h"

namespace headrace::train {

struct SamplingConfig {
  double temperature = 0;  // >= 0; 0 takes the most likely token
  int64_t top_k = 0;       // sample among so many of the likeliest; 0: all
  double top_p = 1;        // and among the likeliest that together have this probability, in (0, 1]
};

// Throws ConfigError naming the value that is out of range.
void validate(const SamplingConfig& config);

// One token from fp32 logits [V]. Ties go to the lowest id. Draws from `rng` only when temperature > 0.
int64_t sample(const at::Tensor& logits, const SamplingConfig& config, Rng& rng);

struct GenerationConfig {
  SamplingConfig sampling = {};
  int64_t max_new_tokens = 128;
  std::vector<int64_t> stop_ids = {};  // generation ends at any of these; it is not part of the result
  uint64_t seed = 0;
};

// Appends to `prompt` (at least one id). `on_token` sees each new token at once; returning false stops.
std::vector<int64_t> generate(const model::Model& model, std::span<const model::BlockBuffers> blocks,
                              std::span<const int64_t> prompt, const GenerationConfig& config,
                              const std::function<bool(int64_t id)>& on_token = {});

}  // namespace headrace::train
