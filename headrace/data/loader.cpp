#include "headrace/data/loader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "headrace/base/errors.h"

namespace headrace::data {
namespace {

constexpr std::string_view kPlace = "data.loader";

void check(const LoaderConfig& config) {
  const auto at_least_one = [](std::string_view name, int64_t value) {
    if (value >= 1 && value <= (1 << 20)) return;
    throw ConfigError(kPlace, std::string(name) + " is " + std::to_string(value) + ", allowed is 1 to 1048576.");
  };
  at_least_one("batch", config.batch);
  at_least_one("accumulate", config.accumulate);
  at_least_one("prefetch", config.prefetch);
  if (config.max_steps < 0) throw ConfigError(kPlace, "max_steps is " + std::to_string(config.max_steps) + ".");
  if (!(config.max_epochs >= 0 && config.max_epochs <= 1e9)) {
    throw ConfigError(kPlace, "max_epochs is " + std::to_string(config.max_epochs) + ", allowed is 0 to 1e9.");
  }
}

Position start_of(const Corpus& corpus, std::span<const Piece> pieces, const OrderConfig& order) {
  Position start;
  start.fingerprint = fingerprint_of(corpus, pieces);
  start.seed = order.seed;
  start.shuffle = order.shuffle;
  start.layout = name_of(order.layout);
  start.max_length = order.max_length;
  start.pack_look_ahead = order.pack_look_ahead;
  return start;
}

// "a.jsonl", "a.jsonl, b.jsonl" or "a.jsonl, b.jsonl and 7 more".
std::string names_of(const std::vector<std::string>& files) {
  constexpr size_t kMostNamed = 4;
  std::string names;
  for (size_t i = 0; i < std::min(kMostNamed, files.size()); ++i) names += (i == 0 ? "" : ", ") + files[i];
  return files.size() <= kMostNamed ? names : names + " and " + std::to_string(files.size() - kMostNamed) + " more";
}

// The restored position, when it belongs to this data and this order.
Position checked(const Position& restored, const Position& start, const Corpus& corpus) {
  if (restored.fingerprint != start.fingerprint) {
    throw DataError(kPlace, "the training data changed: the saved position belongs to data with fingerprint " +
                                restored.fingerprint + ", that of " + names_of(corpus.files()) + " has " +
                                start.fingerprint + ". Give the same files and data settings, or start anew.");
  }
  const auto same = [](std::string_view name, const std::string& saved, const std::string& now) {
    if (saved == now) return;
    throw ConfigError(kPlace, "the saved position was made with " + std::string(name) + " " + saved + ", now it is " +
                                  now + ": the order would differ. Set it back, or start anew.");
  };
  same("seed", std::to_string(restored.seed), std::to_string(start.seed));
  same("shuffle", restored.shuffle ? "on" : "off", start.shuffle ? "on" : "off");
  same("layout", restored.layout, start.layout);
  same("max_length", std::to_string(restored.max_length), std::to_string(start.max_length));
  same("pack_look_ahead", std::to_string(restored.pack_look_ahead), std::to_string(start.pack_look_ahead));
  return restored;
}

StepBatch make_step(const Corpus& corpus, const EpochPlan& plan, const LoaderConfig& config, int64_t first,
                    int64_t end) {
  StepBatch step;
  for (int64_t at = first; at < end; at += config.batch) {
    step.micro_batches.push_back(
        make_micro_batch(corpus, plan.range(at, std::min(end, at + config.batch)), config.order.layout));
    step.trained_tokens += step.micro_batches.back().trained_tokens;
    step.tokens += static_cast<int64_t>(step.micro_batches.back().ids.size());
  }
  return step;
}

}  // namespace

Loader::Loader(std::shared_ptr<const Corpus> corpus, std::vector<Piece> pieces, const LoaderConfig& config,
               const std::optional<Position>& restored)
    : corpus_(std::move(corpus)),
      pieces_(std::move(pieces)),
      config_(config),
      queue_(static_cast<size_t>(std::clamp<int64_t>(config.prefetch, 1, 1 << 20))) {
  check(config_);
  if (pieces_.empty()) throw ConfigError(kPlace, "there is nothing to train on: no document is left.");
  check_order(*corpus_, pieces_, config_.order);
  position_ = start_of(*corpus_, pieces_, config_.order);
  if (restored) position_ = checked(*restored, position_, *corpus_);
  start_ = position_;
  if (config_.drop_last && steps_in_epoch(start_.epoch) == 0) {
    throw ConfigError(kPlace, "an epoch has fewer sequences than one step takes (" + std::to_string(config_.batch) +
                                  " x " + std::to_string(config_.accumulate) +
                                  ") and drop_last is set: no step would ever be made.");
  }
  thread_ = std::jthread([this](const std::stop_token& stop) {
    try {
      run(stop);
      queue_.close();
    } catch (...) {
      queue_.fail(std::current_exception());
    }
  });
}

Loader::~Loader() {
  thread_.request_stop();
  queue_.close();  // ends a push that waits for room
}

// How many of an epoch's sequences are to be trained: all of them, fewer in the last epoch when max_epochs ends inside
// it, none after it.
int64_t Loader::sequences_wanted(int64_t epoch, int64_t sequences) const {
  if (config_.max_epochs == 0) return sequences;
  const double share = std::clamp(config_.max_epochs - static_cast<double>(epoch), 0.0, 1.0);
  return static_cast<int64_t>(std::ceil(share * static_cast<double>(sequences) - 1e-6));
}

// Steps from sequence `first` to the end of the wanted ones; the last step of an epoch may be short.
int64_t Loader::steps_from(int64_t first, int64_t wanted, int64_t sequences) const {
  const int64_t a_step = config_.batch * config_.accumulate;
  const int64_t last_start = config_.drop_last ? std::min(wanted, sequences - a_step + 1) : wanted;
  return std::max<int64_t>(0, (last_start - first + a_step - 1) / a_step);
}

void Loader::run(const std::stop_token& stop) {
  const int64_t a_step = config_.batch * config_.accumulate;
  for (Position at = start_;; ++at.epoch, at.sequence = 0) {
    const EpochPlan plan = plan_epoch(*corpus_, pieces_, config_.order, at.epoch);
    const int64_t sequences = plan.sequences(), wanted = sequences_wanted(at.epoch, sequences);
    if (wanted == 0) return;
    for (int64_t left = steps_from(at.sequence, wanted, sequences); left > 0; --left) {
      if (stop.stop_requested() || (config_.max_steps > 0 && at.step >= config_.max_steps)) return;
      const int64_t end = std::min(sequences, at.sequence + a_step);
      Made made{make_step(*corpus_, plan, config_, at.sequence, end), {}};
      made.batch.step = at.step++;
      at.sequence = end;
      made.batch.epoch = static_cast<double>(at.epoch) + static_cast<double>(end) / static_cast<double>(sequences);
      made.after = at;
      if (!queue_.push(std::move(made))) return;
    }
    if (stop.stop_requested()) return;
  }
}

std::optional<StepBatch> Loader::next() {
  std::optional<Made> made = queue_.pop();
  if (!made) return std::nullopt;
  position_ = std::move(made->after);
  return std::move(made->batch);
}

int64_t Loader::steps_in_epoch(int64_t epoch) const {
  const int64_t sequences = plan_epoch(*corpus_, pieces_, config_.order, epoch).sequences();
  return steps_from(0, sequences_wanted(epoch, sequences), sequences);
}

int64_t Loader::total_steps() const {
  const int64_t limit = config_.max_steps > 0 ? config_.max_steps : std::numeric_limits<int64_t>::max();
  if (config_.max_epochs == 0) return config_.max_steps;
  // Only packing makes epochs of different lengths.
  const bool varies = config_.order.layout == Layout::packed;
  int64_t total = start_.step, sequences = 0;
  for (int64_t epoch = start_.epoch; total < limit; ++epoch) {
    if (varies || sequences == 0) sequences = plan_epoch(*corpus_, pieces_, config_.order, epoch).sequences();
    const int64_t wanted = sequences_wanted(epoch, sequences);
    if (wanted == 0) break;
    total += steps_from(epoch == start_.epoch ? start_.sequence : 0, wanted, sequences);
  }
  return std::min(total, limit);
}

}  // namespace headrace::data
