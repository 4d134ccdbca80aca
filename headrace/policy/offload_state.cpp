// What a checkpoint holds of an offloaded run.
#include "headrace/policy/offload.h"

namespace headrace::policy {

// Masters and moments wherever they are.
ExactBlock Offload::exact_block(size_t block) {
  OffloadStorage& storage = lanes_->storage();
  const HostBlock& host = storage.host(block);
  const model::BlockSpec& spec = model_.blocks()[block];
  if (host.master != nullptr) return {spec, trained_.groups[block], host.master, host.m, host.v};
  const optim::AdamWState& state = storage.device_state(block);
  return {spec,
          trained_.groups[block],
          storage.blocks()[block].weights.data_ptr<float>(),
          state.m.data_ptr<float>(),
          state.v.data_ptr<float>(),
          &lanes_->device()};
}

// Updates under way go on while the next step does: who copies waits for them, and those of the next step for the copy.
StateCopy Offload::begin_save() {
  StateCopy copy{.facts = {{"kind", "exact"}, {"updates", num_updates_}, {"last_norm", last_norm_}},
                 .parts = {},
                 .gate = copy_gate_};
  const std::shared_ptr<CopyGate> gate = CopyGate::close(copy_gate_);
  const auto held = executor_->hold_host_work();
  for (size_t i = 0; i < trained_.groups.size(); ++i) {
    copy.parts.push_back([gate, held, i, block = exact_block(i), updates = num_updates_](PolicyState& state) {
      held->wait_for_earlier();
      save_exact_block(block, updates, state);
      held->release(static_cast<int32_t>(i));
      gate->open(i);
    });
  }
  copy.parts.push_back([held](PolicyState&) { held->release(); });
  return copy;
}

void Offload::restore(const StateReader& saved, const RestoreOptions& options) {
  finish_updates();
  num_updates_ = num_restored_ = restore_exact_updates(model_, saved, options);
  last_norm_ = saved.facts().contains("last_norm") ? number_fact(saved.facts(), "last_norm") : -1;
  for (size_t i = 0; i < trained_.groups.size(); ++i) {
    restore_exact_block(exact_block(i), saved);
    const HostBlock& host = lanes_->storage().host(i);
    if (host.master == nullptr) {
      lanes_->storage().device_state(i).updates = num_updates_;
      continue;
    }
    const at::Tensor& weights = lanes_->storage().blocks()[i].weights;
    lanes_->device().copy(device::Direction::kToDevice, reinterpret_cast<std::byte*>(weights.data_ptr<float>()),
                          reinterpret_cast<const std::byte*>(host.master), static_cast<int64_t>(weights.nbytes()));
  }
  start_lanes();
}

}  // namespace headrace::policy
