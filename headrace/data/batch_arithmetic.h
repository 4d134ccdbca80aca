// global batch = micro batch x accumulate x ranks: what is missing follows, what contradicts is refused. Pure.
#pragma once

#include <cstdint>
#include <optional>

namespace headrace::data {

struct BatchRequest {
  std::optional<int64_t> global_batch = std::nullopt;  // sequences of one optimizer step over all ranks
  std::optional<int64_t> micro_batch = std::nullopt;   // sequences of one forward and backward
  std::optional<int64_t> accumulate = std::nullopt;    // micro-batches of one step
  int64_t ranks = 1;
};

struct BatchSizes {
  int64_t global_batch, micro_batch, accumulate, ranks;
};

// Absent: micro batch 1 and accumulate 1 unless the others decide them. Throws ConfigError naming all numbers and
// proposing the one that works: "global 256, micro 4, accumulate 8, 1 rank" proposes accumulate 64.
BatchSizes resolve_batch(const BatchRequest& request);

}  // namespace headrace::data
