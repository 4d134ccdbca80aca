// Hands out the steps of training in a fixed order, made ahead of time by a thread of its own.
// One consumer thread calls next() and position(); the loader's thread only reads the corpus.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "headrace/base/bounded_queue.h"
#include "headrace/data/batch.h"
#include "headrace/data/corpus.h"
#include "headrace/data/order.h"
#include "headrace/data/position.h"

namespace headrace::data {

struct LoaderConfig {
  OrderConfig order;       // seed, shuffle, layout, max_length, look-ahead
  int64_t batch = 1;       // sequences (documents, or packed sequences) in a micro-batch
  int64_t accumulate = 1;  // micro-batches in a step
  bool drop_last = false;  // leave out the last, shorter step of an epoch; steps never mix epochs
  int64_t max_steps = 0;   // steps from the start of training, restored ones included; 0: no limit
  double max_epochs = 0;   // 0: no limit
  int64_t prefetch = 4;    // steps kept ready
};

struct StepBatch {
  int64_t step = 0;                       // 0, 1, 2 ... counted from the start of training
  double epoch = 0;                       // epochs done after this step: 1.25 is a quarter into the second
  std::vector<MicroBatch> micro_batches;  // each with at least one document
  int64_t trained_tokens = 0, tokens = 0;
};

class Loader {
 public:
  // `pieces` are what may be trained (Split::train, or all_of(corpus)). With `restored`, the first step is the one that
  // was next when position() was taken. Throws ConfigError on a contradiction (nothing to train, an epoch shorter than
  // one step with drop_last, a position of another order) and DataError when the data changed since.
  Loader(std::shared_ptr<const Corpus> corpus, std::vector<Piece> pieces, const LoaderConfig& config,
         const std::optional<Position>& restored = std::nullopt);
  ~Loader();  // ends at once, whatever was prefetched
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next step; waits for it. Empty after max_steps or max_epochs. Rethrows what the thread ran into.
  std::optional<StepBatch> next();

  // Where training stands: after the last step handed out, however many more are prefetched.
  const Position& position() const { return position_; }

  // Steps of a whole epoch. Packing may need one more or less from epoch to epoch, hence the argument. Computes that
  // epoch's order, in the caller's thread.
  int64_t steps_in_epoch(int64_t epoch) const;
  // The number that the last step's `step + 1` will have under max_steps and max_epochs; 0 when neither is set. Equal
  // in a restored loader of the same settings.
  int64_t total_steps() const;

 private:
  struct Made {
    StepBatch batch;
    Position after;
  };
  void run(const std::stop_token& stop);
  int64_t sequences_wanted(int64_t epoch, int64_t sequences) const;
  int64_t steps_from(int64_t first, int64_t wanted, int64_t sequences) const;

  const std::shared_ptr<const Corpus> corpus_;
  const std::vector<Piece> pieces_;
  const LoaderConfig config_;
  Position start_;     // where this loader began
  Position position_;  // after the last step handed out
  BoundedQueue<Made> queue_;
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace headrace::data
