#include "headrace/policy/exact_state.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/errors.h"

namespace headrace::policy {
namespace {

// [elements] into m and v; empty for a parameter that is frozen.
std::optional<int64_t> state_offset(const optim::ParameterGroups& groups, const model::ParameterSpec& parameter) {
  for (const optim::ParameterGroup& group : groups.groups) {
    if (parameter.offset >= group.offset && parameter.offset < group.offset + group.numel) {
      return group.state_offset + (parameter.offset - group.offset);
    }
  }
  return std::nullopt;
}

std::span<float> part(float* values, int64_t offset, int64_t numel) {
  return {values + offset, static_cast<size_t>(numel)};
}

bool is_on_host(const ExactBlock& block) { return block.device == nullptr || block.device->shares_host_memory(); }

void put(const ExactBlock& block, const std::string& name, const std::vector<int64_t>& shape, const float* values,
         PolicyState& state) {
  if (is_on_host(block)) return state.put(name, shape, values);
  const std::span<std::byte> to = std::as_writable_bytes(state.add<float>(name, shape));
  block.device->read(to.data(), reinterpret_cast<const std::byte*>(values), static_cast<int64_t>(to.size()));
}

void read(const ExactBlock& block, const StateReader& saved, const std::string& name,
          const model::ParameterSpec& parameter, float* values) {
  if (is_on_host(block)) return read_tensor(saved, name, parameter.shape, part(values, 0, parameter.numel));
  std::vector<float> whole(static_cast<size_t>(parameter.numel));
  read_tensor<float>(saved, name, parameter.shape, whole);
  const std::span<const std::byte> from = std::as_bytes(std::span(whole));
  block.device->write(reinterpret_cast<std::byte*>(values), from.data(), static_cast<int64_t>(from.size()));
}

struct Counts {
  int64_t smallest = std::numeric_limits<int64_t>::max(), largest = 0;
};

Counts counts_of(const model::Model& model, const StateReader& saved) {
  Counts counts;
  for (const model::BlockSpec& block : model.blocks()) {
    for (const model::ParameterSpec& parameter : block.parameters) {
      const std::string name = "updates/" + parameter.name;
      if (!saved.find(name)) continue;  // frozen
      const std::vector<int64_t> list = read_list<int64_t>(saved, name);
      require_counts(name, list);
      for (const int64_t updates : list) {
        counts.smallest = std::min(counts.smallest, updates);
        counts.largest = std::max(counts.largest, updates);
      }
    }
  }
  return counts;
}

bool has_windows(const model::Model& model, const StateReader& saved) {
  for (const model::BlockSpec& block : model.blocks()) {
    for (const model::ParameterSpec& parameter : block.parameters) {
      if (saved.find("window/" + parameter.name)) return true;
    }
  }
  return false;
}

}  // namespace

void save_exact_block(const ExactBlock& block, int64_t updates, PolicyState& state) {
  for (const model::ParameterSpec& parameter : block.spec.parameters) {
    if (parameter.numel == 0) continue;
    put(block, "master/" + parameter.name, parameter.shape, block.master + parameter.offset, state);
    const std::optional<int64_t> at = state_offset(block.groups, parameter);
    if (!at) continue;
    put(block, "m/" + parameter.name, parameter.shape, block.m + *at, state);
    put(block, "v/" + parameter.name, parameter.shape, block.v + *at, state);
    state.add<int64_t>("updates/" + parameter.name, {1}).front() = updates;
  }
}

void restore_exact_block(const ExactBlock& block, const StateReader& saved) {
  for (const model::ParameterSpec& parameter : block.spec.parameters) {
    if (parameter.numel == 0) continue;
    read(block, saved, "master/" + parameter.name, parameter, block.master + parameter.offset);
    const std::optional<int64_t> at = state_offset(block.groups, parameter);
    if (!at) continue;
    read(block, saved, "m/" + parameter.name, parameter, block.m + *at);
    read(block, saved, "v/" + parameter.name, parameter, block.v + *at);
  }
}

int64_t restore_exact_updates(const model::Model& model, const StateReader& saved, const RestoreOptions& options) {
  const Counts counts = counts_of(model, saved);
  std::string lost;
  if (counts.smallest < counts.largest) {
    lost = "columns were updated between " + std::to_string(counts.smallest) + " and " +
           std::to_string(counts.largest) + " times, and this policy counts for all of them together";
  }
  if (has_windows(model, saved)) {
    lost += (lost.empty() ? "" : "; ") + std::string("gradients of a window under way are held back");
  }
  if (lost.empty()) return counts.largest;
  if (!options.accepts_changes) {
    throw ConfigError("policy.restore", lost + ". Resume with --policy zenflow, or accept with --resume-changed that " +
                                            std::to_string(counts.largest) +
                                            " updates count for all and that such gradients are left out.");
  }
  if (options.say) options.say("warning: " + lost + ": the largest count is taken, such gradients are left out.");
  return counts.largest;
}

}  // namespace headrace::policy
