#include "headrace/data/evaluation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "headrace/base/errors.h"

namespace headrace::data {

Evaluation::Evaluation(std::shared_ptr<const Corpus> corpus, std::vector<Piece> pieces, OrderConfig order,
                       int64_t batch)
    : corpus_(std::move(corpus)), pieces_(std::move(pieces)), layout_(order.layout), batch_(batch) {
  if (batch < 1) throw ConfigError("data.evaluate", "batch is " + std::to_string(batch) + ", must be at least 1.");
  order.shuffle = false;
  check_order(*corpus_, pieces_, order);
  plan_ = plan_epoch(*corpus_, pieces_, order, 0);
}

std::optional<MicroBatch> Evaluation::next() {
  if (sequence_ >= plan_.sequences()) return std::nullopt;
  const int64_t first = sequence_;
  sequence_ = std::min(plan_.sequences(), first + batch_);
  return make_micro_batch(*corpus_, plan_.range(first, sequence_), layout_);
}

int64_t Evaluation::micro_batches() const { return (plan_.sequences() + batch_ - 1) / batch_; }

}  // namespace headrace::data
