// Held-out data in a fixed order, as micro-batches like those of training. Owned by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/data/batch.h"
#include "headrace/data/corpus.h"
#include "headrace/data/order.h"

namespace headrace::data {

class Evaluation {
 public:
  // `batch` sequences a micro-batch; never shuffled: order.shuffle and order.seed are ignored.
  Evaluation(std::shared_ptr<const Corpus> corpus, std::vector<Piece> pieces, OrderConfig order, int64_t batch);

  void rewind() { sequence_ = 0; }
  // The next micro-batch; empty at the end.
  std::optional<MicroBatch> next();
  int64_t micro_batches() const;
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::shared_ptr<const Corpus> corpus_;
  std::vector<Piece> pieces_;
  EpochPlan plan_;
  Layout layout_;
  int64_t batch_;
  int64_t sequence_ = 0;
};

}  // namespace headrace::data
