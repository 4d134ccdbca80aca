#include "headrace/policy/zenflow/saved_columns.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "headrace/base/errors.h"

namespace headrace::policy::zenflow {
namespace {

// One side of a matrix: its channels by position, and where its compact form begins in the side's flat buffers.
struct Side {
  const std::vector<int32_t>& channels;
  int64_t offset;
};

Side important_of(const MatrixColumns& matrix) { return {matrix.important, matrix.important_offset}; }
Side deferred_of(const MatrixColumns& matrix) { return {matrix.deferred, matrix.deferred_offset}; }

kernel::Lines all_lines(const MatrixColumns& matrix, const Side& side) {
  return {0, kernel::num_lines(matrix.shape, side.channels.size())};
}

size_t numel_of(const MatrixColumns& matrix, const Side& side) {
  return static_cast<size_t>(all_lines(matrix, side).end * kernel::line_width(matrix.shape, side.channels.size()));
}

// Between a matrix as it is in the model and one side's flat buffer.
void put_side(const float* buffer, const MatrixColumns& matrix, const Side& side, std::span<float> whole) {
  kernel::scatter_channels({buffer + side.offset, numel_of(matrix, side)}, matrix.shape, side.channels,
                           all_lines(matrix, side), whole);
}

void take_side(std::span<const float> whole, const MatrixColumns& matrix, const Side& side, float* buffer) {
  kernel::gather_channels(whole, matrix.shape, side.channels, all_lines(matrix, side),
                          {buffer + side.offset, numel_of(matrix, side)});
}

const model::ParameterSpec& parameter_at(const SavedBlock& block, int64_t offset) {
  for (const model::ParameterSpec& parameter : block.spec.parameters) {
    if (parameter.offset == offset && parameter.numel > 0) return parameter;
  }
  throw InternalError("policy.zenflow",
                      "no parameter of " + block.spec.name + " begins at " + std::to_string(offset) + ".");
}

bool is_trained(const SavedBlock& block, const model::ParameterSpec& parameter) {
  const auto begins_there = [&](const auto& trained) { return trained.offset == parameter.offset; };
  return std::ranges::any_of(block.columns.matrices, begins_there) ||
         std::ranges::any_of(block.columns.vectors, begins_there);
}

// The device's part of a block where the host can use it: in place, or copies, which finish() brings back.
class Mirror {
 public:
  explicit Mirror(const SavedBlock& block) : block_(block), is_copy_(!block.device.shares_host_memory()) {
    if (!is_copy_) return;
    block_.weights = copy_of(block.weights, block.spec.numel);
    block_.important.m = copy_of(block.important.m, block.columns.important_numel);
    block_.important.v = copy_of(block.important.v, block.columns.important_numel);
  }

  const SavedBlock& block() const { return block_; }
  bool is_copy() const { return is_copy_; }
  void finish() {
    for (const Copy& copy : copies_) {
      const std::span<const std::byte> bytes = std::as_bytes(std::span(copy.values));
      block_.device.write(reinterpret_cast<std::byte*>(copy.original), bytes.data(),
                          static_cast<int64_t>(bytes.size()));
    }
  }

 private:
  struct Copy {
    float* original;
    std::vector<float> values;
  };
  float* copy_of(float* original, int64_t numel) {
    Copy& copy = copies_.emplace_back(original, std::vector<float>(static_cast<size_t>(numel)));
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(copy.values));
    block_.device.read(bytes.data(), reinterpret_cast<const std::byte*>(original), static_cast<int64_t>(bytes.size()));
    return copy.values.data();
  }

  SavedBlock block_;
  const bool is_copy_;
  std::vector<Copy> copies_;
};

// Refers to it only where it stays.
void put(const Mirror& mirror, const std::string& name, const std::vector<int64_t>& shape, const float* values,
         PolicyState& state) {
  if (!mirror.is_copy()) return state.put(name, shape, values);
  const std::span<float> to = state.add<float>(name, shape);
  std::copy_n(values, to.size(), to.data());
}

std::vector<float> window_sum(const SavedBlock& block, const MatrixColumns& matrix, const WindowParts& window) {
  std::vector<float> sum(numel_of(matrix, deferred_of(matrix)));
  bool is_first = true;
  for (const WindowParts::Part& part : window.parts) {
    const float* gradient = block.deferred.gradients[static_cast<size_t>(part.slot)] + matrix.deferred_offset;
    kernel::accumulate_gradient(sum, std::span(gradient, sum.size()), part.scale, std::exchange(is_first, false));
  }
  return sum;
}

// Moments of deferred columns are left for the host's part, as are their masters.
void save_device_matrix(const Mirror& mirror, size_t index, bool is_under_way, PolicyState& state) {
  const SavedBlock& block = mirror.block();
  const MatrixColumns& matrix = block.columns.matrices[index];
  const model::ParameterSpec& parameter = parameter_at(block, matrix.offset);
  const std::string& name = parameter.name;
  const std::vector<int64_t>& shape = parameter.shape;
  const float* weights = block.weights + matrix.offset;
  const std::span<float> master = state.add<float>("master/" + name, shape);
  std::copy_n(weights, master.size(), master.data());
  put_side(block.important.m, matrix, important_of(matrix), state.add<float>("m/" + name, shape));
  put_side(block.important.v, matrix, important_of(matrix), state.add<float>("v/" + name, shape));
  const auto put_list = [&]<class T>(const char* kind, std::span<const T> values) {
    std::ranges::copy(values, state.add<T>(kind + name, {static_cast<int64_t>(values.size())}).begin());
  };
  put_list("updates/", std::span<const int64_t>(matrix.updates));
  put_list("important/", std::span<const int32_t>(matrix.important));
  put_list("deferred/", std::span<const int32_t>(matrix.deferred));
  put_list("score/", block.scores[index].smoothed());
  if (is_under_way && !matrix.deferred.empty()) put(mirror, "seen/" + name, shape, weights, state);
}

void save_host_matrix(const SavedBlock& block, const MatrixColumns& matrix, const WindowParts& window,
                      PolicyState& state) {
  if (matrix.deferred.empty()) return;
  const model::ParameterSpec& parameter = parameter_at(block, matrix.offset);
  const Side deferred = deferred_of(matrix);
  const ColumnState& from = block.deferred.state;
  put_side(from.master, matrix, deferred, state.added<float>("master/" + parameter.name));
  put_side(from.m, matrix, deferred, state.added<float>("m/" + parameter.name));
  put_side(from.v, matrix, deferred, state.added<float>("v/" + parameter.name));
  if (window.parts.empty()) return;
  const std::vector<float> sum = window_sum(block, matrix, window);
  const std::span<float> whole = state.add<float>("window/" + parameter.name, parameter.shape);
  std::ranges::fill(whole, 0.0F);
  put_side(sum.data(), matrix, {matrix.deferred, 0}, whole);
}

void save_vector(const Mirror& mirror, const Vector& vector, PolicyState& state) {
  const SavedBlock& block = mirror.block();
  const model::ParameterSpec& parameter = parameter_at(block, vector.offset);
  put(mirror, "master/" + parameter.name, parameter.shape, block.weights + vector.offset, state);
  put(mirror, "m/" + parameter.name, parameter.shape, block.important.m + vector.important_offset, state);
  put(mirror, "v/" + parameter.name, parameter.shape, block.important.v + vector.important_offset, state);
  state.add<int64_t>("updates/" + parameter.name, {1}).front() = block.columns.vector_updates;
}

// Every channel is on one side, once.
void require_sides(const Sides& sides, const MatrixColumns& matrix, const std::string& name) {
  std::vector<int32_t> all = sides.important;
  all.insert(all.end(), sides.deferred.begin(), sides.deferred.end());
  std::ranges::sort(all);
  std::vector<int32_t> expected(static_cast<size_t>(matrix.shape.num_channels()));
  std::iota(expected.begin(), expected.end(), 0);
  if (all == expected) return;
  throw DataError("policy.restore", "important/" + name + " and deferred/" + name + " do not name each of " +
                                        std::to_string(expected.size()) + " channels once.");
}

void restore_matrix(const SavedBlock& block, const MatrixColumns& matrix, const StateReader& saved) {
  const model::ParameterSpec& parameter = parameter_at(block, matrix.offset);
  const std::span<float> weights(block.weights + matrix.offset, static_cast<size_t>(parameter.numel));
  const Side important = important_of(matrix), deferred = deferred_of(matrix);
  std::vector<float> whole(weights.size());
  const auto read = [&](const char* kind) { read_tensor<float>(saved, kind + parameter.name, parameter.shape, whole); };
  read("master/");
  std::ranges::copy(whole, weights.begin());
  take_side(whole, matrix, deferred, block.deferred.state.master);
  read("m/");
  take_side(whole, matrix, important, block.important.m);
  take_side(whole, matrix, deferred, block.deferred.state.m);
  read("v/");
  take_side(whole, matrix, important, block.important.v);
  take_side(whole, matrix, deferred, block.deferred.state.v);
  if (matrix.deferred.empty()) return;
  if (saved.find("seen/" + parameter.name)) {
    read_tensor(saved, "seen/" + parameter.name, parameter.shape, weights);
  }
  if (!saved.find("window/" + parameter.name)) return;
  read("window/");
  take_side(whole, matrix, deferred, block.deferred.gradients.front());
}

}  // namespace

void save_device_part(const SavedBlock& block, bool is_under_way, PolicyState& state) {
  const Mirror mirror(block);
  for (size_t i = 0; i < block.columns.matrices.size(); ++i) save_device_matrix(mirror, i, is_under_way, state);
  for (const Vector& vector : block.columns.vectors) save_vector(mirror, vector, state);
  for (const model::ParameterSpec& parameter : block.spec.parameters) {
    if (parameter.numel == 0 || is_trained(block, parameter)) continue;
    put(mirror, "master/" + parameter.name, parameter.shape, mirror.block().weights + parameter.offset, state);
  }
}

void save_host_part(const SavedBlock& block, const WindowParts& window, PolicyState& state) {
  for (const MatrixColumns& matrix : block.columns.matrices) save_host_matrix(block, matrix, window, state);
}

int64_t extra_saved_bytes(const MatrixColumns& matrix) {
  constexpr auto kOfChannel = static_cast<int64_t>(sizeof(int64_t) + sizeof(int32_t) + sizeof(double));
  const int64_t channels = matrix.shape.num_channels() * kOfChannel;
  if (matrix.deferred.empty()) return channels;
  return channels + 2 * matrix.shape.num_elements() * static_cast<int64_t>(sizeof(float));
}

std::vector<Sides> saved_sides(const SavedBlock& block, const StateReader& saved) {
  std::vector<Sides> sides;
  for (const MatrixColumns& matrix : block.columns.matrices) {
    const std::string& name = parameter_at(block, matrix.offset).name;
    if (sides.empty() && !saved.find("important/" + name)) return {};
    sides.push_back({read_list<int32_t>(saved, "important/" + name), read_list<int32_t>(saved, "deferred/" + name)});
    require_sides(sides.back(), matrix, name);
  }
  return sides;
}

void restore_counters(const SavedBlock& block, const StateReader& saved) {
  for (MatrixColumns& matrix : block.columns.matrices) {
    const std::string name = "updates/" + parameter_at(block, matrix.offset).name;
    const int64_t channels = matrix.shape.num_channels();
    matrix.updates.assign(static_cast<size_t>(channels), 0);
    if (length_of(saved, name) == 1) {
      std::ranges::fill(matrix.updates, read_list<int64_t>(saved, name).front());
    } else {
      read_tensor<int64_t>(saved, name, std::span(&channels, 1), matrix.updates);
    }
    require_counts(name, matrix.updates);
  }
  block.columns.vector_updates = 0;
  for (const Vector& vector : block.columns.vectors) {
    for (const int64_t updates : read_list<int64_t>(saved, "updates/" + parameter_at(block, vector.offset).name)) {
      block.columns.vector_updates = std::max(block.columns.vector_updates, updates);
    }
  }
}

void restore_scores(const SavedBlock& block, const StateReader& saved, double score_weight) {
  for (size_t i = 0; i < block.scores.size(); ++i) {
    const MatrixColumns& matrix = block.columns.matrices[i];
    const std::string name = "score/" + parameter_at(block, matrix.offset).name;
    const int64_t channels = matrix.shape.num_channels();
    std::vector<double> scores(static_cast<size_t>(channels));
    read_tensor<double>(saved, name, std::span(&channels, 1), scores);
    block.scores[i].restore(std::move(scores), score_weight);
  }
}

void restore_values(const SavedBlock& on_device, const StateReader& saved) {
  Mirror mirror(on_device);
  const SavedBlock& block = mirror.block();
  for (const MatrixColumns& matrix : block.columns.matrices) restore_matrix(block, matrix, saved);
  for (const model::ParameterSpec& parameter : block.spec.parameters) {
    if (parameter.numel == 0) continue;
    const auto read = [&](const char* kind, float* to) {
      read_tensor<float>(saved, kind + parameter.name, parameter.shape, {to, static_cast<size_t>(parameter.numel)});
    };
    if (!is_trained(block, parameter)) read("master/", block.weights + parameter.offset);
    for (const Vector& vector : block.columns.vectors) {
      if (vector.offset != parameter.offset) continue;
      read("master/", block.weights + parameter.offset);
      read("m/", block.important.m + vector.important_offset);
      read("v/", block.important.v + vector.important_offset);
    }
  }
  mirror.finish();
}

void choose_by_score(MatrixColumns& matrix, std::span<const double> scores) {
  std::vector<int32_t> channels(scores.size());
  std::iota(channels.begin(), channels.end(), 0);
  std::ranges::stable_sort(
      channels, [&](int32_t a, int32_t b) { return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)]; });
  const auto middle = channels.begin() + static_cast<std::ptrdiff_t>(matrix.important.size());
  matrix.important.assign(channels.begin(), middle);
  matrix.deferred.assign(middle, channels.end());
  std::ranges::sort(matrix.important);
  std::ranges::sort(matrix.deferred);
}

void apply_saved_window(const SavedBlock& block, const WindowUpdate& update, const StateReader& saved,
                        PolicyState& applied) {
  for (size_t i = 0; i < block.columns.matrices.size(); ++i) {
    const MatrixColumns& matrix = block.columns.matrices[i];
    const model::ParameterSpec& parameter = parameter_at(block, matrix.offset);
    if (matrix.deferred.empty()) continue;
    const Side side{matrix.deferred, 0};
    const auto compact = [&](const std::string& kind, std::span<float> whole) {
      read_tensor(saved, kind + parameter.name, parameter.shape, whole);
      std::vector<float> values(numel_of(matrix, side));
      take_side(whole, matrix, side, values.data());
      return values;
    };
    const std::span<float> master = applied.add<float>("master/" + parameter.name, parameter.shape);
    const std::span<float> m = applied.add<float>("m/" + parameter.name, parameter.shape);
    const std::span<float> v = applied.add<float>("v/" + parameter.name, parameter.shape);
    std::vector<float> of_master = compact("master/", master), of_m = compact("m/", m), of_v = compact("v/", v);
    std::vector<float> unused(master.size());
    const std::vector<float> sum = compact("window/", unused);
    const kernel::WindowSlot slot{std::span<const float>(sum), 1};
    kernel::adamw_update_channels({of_master, of_m, of_v}, {{&slot, 1}, update.parts.mean_scale}, matrix.shape,
                                  all_lines(matrix, side), update.corrections[i],
                                  matrix.decays ? update.decaying : update.plain);
    put_side(of_master.data(), matrix, side, master);
    put_side(of_m.data(), matrix, side, m);
    put_side(of_v.data(), matrix, side, v);
    std::vector<int64_t> updates = matrix.updates;
    for (const int32_t channel : matrix.deferred) ++updates[static_cast<size_t>(channel)];
    applied.put("updates/" + parameter.name, {static_cast<int64_t>(updates.size())}, updates.data());
  }
}

}  // namespace headrace::policy::zenflow
