#include "headrace/train/checkpointing.h"

#include <algorithm>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/units.h"
#include "headrace/os/affinity.h"
#include "headrace/os/memory_facts.h"
#include "headrace/store/keep.h"
#include "headrace/telemetry/spans.h"

namespace headrace::train {
namespace {

double now_s() { return telemetry::PhaseTimes::steady_seconds(); }

store::BackgroundOptions options_of(const Checkpointing::Settings& settings) {
  store::BackgroundOptions options;
  options.keep_last = settings.keep_last;
  options.on_unseen_error = [say = settings.say](const std::string& text) { say("warning: " + text); };
  options.on_thread_start = [cores = settings.writer_cores] {
    if (!cores.empty()) os::pin_this_thread(cores);
  };
  return options;
}

std::vector<store::TensorView> views_of(const policy::PolicyState& state) {
  std::vector<store::TensorView> views;
  for (const policy::StateTensor& tensor : state.tensors()) {
    views.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
  }
  return views;
}

}  // namespace

Checkpointing::Checkpointing(const store::RunLock& lock, Settings settings)
    : lock_(lock), settings_(std::move(settings)), last_save_s_(now_s()), writer_(lock, options_of(settings_)) {}

bool Checkpointing::is_due(int64_t step) const {
  const config::SaveEvery& every = settings_.every;
  if (every.steps > 0) return step % every.steps == 0;
  return every.seconds > 0 && now_s() - last_save_s_ >= every.seconds;
}

bool Checkpointing::has_room() const {
  const int64_t need = settings_.saved_bytes;
  const os::MemoryFacts facts = os::memory_facts();
  if (facts.available_bytes > 0 && need > facts.available_bytes) return false;
  return settings_.host_budget == 0 || facts.resident_bytes + need <= settings_.host_budget;
}

// When steps have taken what they need.
void Checkpointing::make_copy() {
  if (copy_ || writes_here_) return;
  writes_here_ = !has_room();
  if (writes_here_) {
    settings_.say("warning: memory has no room for a copy of the training state: training waits while it is saved.");
  } else {
    copy_ = std::make_shared<policy::PolicyState>();
  }
}

// Memory that is touched for the first time would hold the first copy up.
void Checkpointing::prepare_copy() {
  make_copy();
  if (!copy_) return;
  keep_error([&] { writer_.start([copy = copy_, bytes = settings_.saved_bytes] { copy->reserve(bytes); }); });
}

template <class Body>
void Checkpointing::keep_error(const Body& body) {
  if (error_) return;
  try {
    body();
  } catch (...) {
    error_ = std::current_exception();
  }
}

void Checkpointing::save(policy::Policy& policy, int64_t step, Json state) {
  keep_error([&] { tell(writer_.wait()); });  // the copy is free again
  if (error_) return;
  make_copy();
  if (writes_here_) {
    write_here(policy, step, std::move(state));
  } else {
    write_in_background(policy, step, std::move(state));
  }
  last_step_ = step;
  last_save_s_ = now_s();
}

void Checkpointing::write_in_background(policy::Policy& policy, int64_t step, Json state) {
  const double begin_s = now_s();
  const auto from = std::make_shared<policy::StateCopy>(policy.begin_save());
  state["policy"] = from->facts;
  gate_ = from->gate;
  const auto copy_tensors = [from, to = copy_] {
    to->begin();
    for (const auto& copy_part : from->parts) copy_part(*to);
    return views_of(*to);
  };
  keep_error([&] { writer_.start({step, {}, std::move(state), copy_, copy_tensors}); });
  settings_.note("checkpoint of step " + std::to_string(step) + ": training waited " +
                 format_seconds(now_s() - begin_s));
}

void Checkpointing::write_here(policy::Policy& policy, int64_t step, Json state) {
  const double begin_s = now_s();
  policy::PolicyState views(policy::PolicyState::Hold::kViews);
  policy.save(views);
  state["policy"] = views.facts();
  keep_error([&] {
    const auto written = store::write_checkpoint(lock_, step, views_of(views), state);
    if (written) tell({{*written, 0, now_s() - begin_s}});
    store::keep_last(lock_, settings_.keep_last);
  });
}

void Checkpointing::tell(const std::vector<store::FinishedWrite>& finished) const {
  for (const store::FinishedWrite& write : finished) {
    settings_.note("checkpoint of step " + std::to_string(write.checkpoint.step) + ": " +
                   format_bytes(write.checkpoint.manifest.total_bytes()) + " in " + write.checkpoint.folder.native() +
                   ", copied in " + format_seconds(write.copy_time_s) + " (compute waited " +
                   format_seconds(gate_ ? gate_->waited_s() : 0) + " for it), written in " +
                   format_seconds(write.write_time_s));
  }
}

void Checkpointing::poll() {
  const bool will_save = settings_.every.steps > 0 || settings_.every.seconds > 0;
  if (will_save && !copy_ && !writes_here_ && !error_) prepare_copy();
  keep_error([&] { tell(writer_.poll()); });
}

void Checkpointing::finish() {
  keep_error([&] { tell(writer_.wait()); });
}

}  // namespace headrace::train
