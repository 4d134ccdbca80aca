// What a checkpoint holds of a ZenFlow run: columns (saved_columns.h) and, as facts, what the schedule, the windows and
// the measures of staleness need to go on.
#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/policy/zenflow/zenflow.h"

namespace headrace::policy {
namespace {

using zenflow::Sides;

// A saved block as it is once its window has been applied: nothing is under way.
class Applied final : public StateReader {
 public:
  Applied(const StateReader& saved, const PolicyState& applied) : saved_(saved), applied_(applied) {}
  std::optional<StateTensor> find(const std::string& name) const override {
    if (name.starts_with("seen/") || name.starts_with("window/")) return std::nullopt;
    std::optional<StateTensor> tensor = applied_.find(name);
    return tensor ? tensor : saved_.find(name);
  }
  void done_with(const std::string& name) const override { saved_.done_with(name); }
  const Json& facts() const override { return saved_.facts(); }

 private:
  const StateReader& saved_;
  const PolicyState& applied_;
};

// A block's books as they are now, whatever a later step enters.
struct Books {
  zenflow::BlockColumns columns;
  std::vector<zenflow::ColumnScore> scores;
  zenflow::WindowParts window;
};

bool are_as_many(const std::vector<Sides>& sides, const zenflow::BlockColumns& block) {
  for (size_t i = 0; i < sides.size(); ++i) {
    if (sides[i].important.size() != block.matrices[i].important.size()) return false;
  }
  return true;
}

}  // namespace

zenflow::SavedBlock ZenFlow::saved_block(size_t block) {
  zenflow::Storage& storage = lanes_->storage();
  return {model_.blocks()[block],   lanes_->columns()[block],
          states_[block].scores,    storage.blocks()[block].weights.data_ptr<float>(),
          storage.important(block), storage.deferred(block),
          lanes_->device()};
}

// The device's parts are copied first, which its next updates wait for; then the host's, when its work under way has
// ended: until then it begins none of the steps to come.
StateCopy ZenFlow::begin_save() {
  if (is_due_before_forward()) finish_updates();
  StateCopy copy;
  Json blocks = Json::array();
  std::vector<std::function<void(PolicyState&)>> host_parts;
  const std::shared_ptr<CopyGate> gate = CopyGate::close(copy_gate_);
  const auto held = executor_->hold_host_work();
  for (size_t i = 0; i < states_.size(); ++i) {
    const bool is_under_way = schedule_.is_under_way(i) && !columns()[i].pieces.empty();
    const auto books = std::make_shared<Books>(columns()[i], states_[i].scores, states_[i].ledger.so_far());
    const auto block = [now = saved_block(i), books] {
      return zenflow::SavedBlock{now.spec,      books->columns, books->scores, now.weights,
                                 now.important, now.deferred,   now.device};
    };
    copy.parts.push_back([gate, i, block, is_under_way](PolicyState& state) {
      save_device_part(block(), is_under_way, state);
      gate->open(i);
    });
    host_parts.push_back([held, i, block, books](PolicyState& state) {
      held->wait_for_earlier();
      save_host_part(block(), books->window, state);
      held->release(static_cast<int32_t>(i));
    });
    blocks.push_back(block_facts(i));
  }
  std::ranges::move(host_parts, std::back_inserter(copy.parts));
  copy.parts.push_back([held](PolicyState&) { held->release(); });
  copy.gate = copy_gate_;
  copy.facts = {{"kind", "zenflow"},
                {"updates", num_updates_},
                {"schedule", schedule_.to_json()},
                {"staleness", staleness_.to_json()},
                {"blocks", std::move(blocks)}};
  return copy;
}

int64_t ZenFlow::saved_bytes() const {
  int64_t bytes = Policy::saved_bytes();
  for (size_t i = 0; i < states_.size(); ++i) {
    for (const zenflow::MatrixColumns& matrix : columns()[i].matrices) {
      bytes += zenflow::extra_saved_bytes(matrix);
    }
  }
  return bytes;
}

// Something that the next forward waits for: it is brought up before the state is what a later run can begin with.
bool ZenFlow::is_due_before_forward() const {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].has_adopted || schedule_.is_due_before_forward(i)) return true;
  }
  return false;
}

Json ZenFlow::block_facts(size_t block) const {
  const BlockState& state = states_[block];
  return {{"window",
           {{"rates", state.window_rates},
            {"first_tokens", state.ledger.first_tokens()},
            {"tokens", state.ledger.tokens()}}},
          {"under_way_length", state.window_length},
          {"score_weight", state.scores.empty() ? 0.0 : state.scores.front().weight()},
          {"churn", state.churn}};
}

void ZenFlow::restore(const StateReader& saved, const RestoreOptions& options) {
  num_updates_ = count_fact(saved.facts(), "updates");
  const bool is_own = fact(saved.facts(), "kind") == "zenflow";
  if (is_own) {
    restore_schedule(saved.facts());
  } else {
    schedule_.begin_after(num_updates_);
  }
  bool has_chosen = false;
  for (size_t i = 0; i < states_.size(); ++i) {
    const std::vector<Sides> sides = zenflow::saved_sides(saved_block(i), saved);
    const bool keeps = are_as_many(sides, columns()[i]);
    has_chosen = has_chosen || !keeps;
    if (keeps) {
      restore_block(i, sides, saved);
    } else {
      rechoose_block(i, sides, saved);
    }
  }
  if (has_chosen && options.say) {
    options.say(
        "the share of important columns changed: windows under way were applied, columns chosen by their scores.");
  }
}

void ZenFlow::restore_schedule(const Json& facts) {
  const Json& blocks = fact(facts, "blocks");
  if (!blocks.is_array() || blocks.size() != states_.size()) {
    throw DataError("policy.restore", "the saved state is of " + std::to_string(blocks.size()) +
                                          " blocks, the model has " + std::to_string(states_.size()) + ".");
  }
  schedule_.restore(fact(facts, "schedule"), {.keeps_interval = settings_.auto_interval,
                                              .smallest = settings_.limits.smallest,
                                              .longest = longest_interval()});
  staleness_.restore(fact(facts, "staleness"));
  for (size_t i = 0; i < states_.size(); ++i) {
    const Json& saved = blocks.at(i);
    const Json& window = fact(saved, "window");
    BlockState& state = states_[i];
    state.window_rates = numbers_fact(window, "rates");
    state.ledger.restore(count_fact(window, "first_tokens"), count_fact(window, "tokens"));
    state.window_length = count_fact(saved, "under_way_length");
    state.churn = number_fact(saved, "churn");
    if (!state.window_rates.empty()) state.first_number = num_steps_;
    require_bounded(i);
  }
}

// Of a window that a run of ours left.
void ZenFlow::require_bounded(size_t block) const {
  const auto rates = static_cast<int64_t>(states_[block].window_rates.size());
  const int64_t under_way = schedule_.is_under_way(block) ? states_[block].window_length : 0;
  const int64_t longest = schedule_.window_length(block) + under_way;
  if (rates <= schedule_.window_steps(block) && longest <= staleness_.bound()) return;
  throw DataError("policy.restore", "the saved window of block " + model_.blocks()[block].name + " has " +
                                        std::to_string(schedule_.window_steps(block)) + " steps and rates for " +
                                        std::to_string(rates) + "; with the one under way " + std::to_string(longest) +
                                        " steps, and the bound is " + std::to_string(staleness_.bound()) + ".");
}

void ZenFlow::restore_scores(size_t block, const StateReader& saved) {
  const double weight = number_fact(fact(saved.facts(), "blocks").at(block), "score_weight");
  zenflow::restore_scores(saved_block(block), saved, weight);
}

// Of a policy without sides nothing but values and counters is there: the first columns are important, as at a start.
void ZenFlow::restore_block(size_t block, const std::vector<Sides>& sides, const StateReader& saved) {
  for (size_t i = 0; i < sides.size(); ++i) {
    lanes_->columns()[block].matrices[i].important = sides[i].important;
    lanes_->columns()[block].matrices[i].deferred = sides[i].deferred;
  }
  restore_counters(saved_block(block), saved);
  restore_values(saved_block(block), saved);
  if (!sides.empty()) restore_scores(block, saved);
}

void ZenFlow::rechoose_block(size_t block, const std::vector<Sides>& sides, const StateReader& saved) {
  BlockState& state = states_[block];
  std::vector<zenflow::MatrixColumns>& matrices = lanes_->columns()[block].matrices;
  const std::vector<zenflow::MatrixColumns> own = matrices;  // how many are important now, and where they lie
  PolicyState applied;
  if (!state.window_rates.empty() && state.ledger.first_tokens() > 0) {
    for (size_t i = 0; i < sides.size(); ++i) {
      matrices[i].important = sides[i].important;
      matrices[i].deferred = sides[i].deferred;
    }
    restore_counters(saved_block(block), saved);
    zenflow::WindowUpdate update = plan_update(block);
    update.parts = state.ledger.end_window();
    apply_saved_window(saved_block(block), update, saved, applied);
    matrices = own;
  }
  state.window_rates.clear();
  state.first_number = -1;
  schedule_.forget_window(block);
  restore_scores(block, saved);
  for (size_t i = 0; i < matrices.size(); ++i) choose_by_score(matrices[i], state.scores[i].smoothed());
  const Applied reader(saved, applied);
  restore_counters(saved_block(block), reader);
  restore_values(saved_block(block), reader);
}

}  // namespace headrace::policy
