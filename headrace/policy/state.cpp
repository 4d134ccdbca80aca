#include "headrace/policy/state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/base/errors.h"

namespace headrace::policy {
namespace {

constexpr std::string_view kPlace = "policy.restore";

std::string text_of(safetensors::DType dtype, std::span<const int64_t> shape) {
  std::string text(safetensors::name_of(dtype));
  text += " [";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

size_t bytes_of(safetensors::DType dtype, std::span<const int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return static_cast<size_t>(elements * safetensors::bits_of(dtype) / 8);
}

StateTensor found(const StateReader& saved, const std::string& name) {
  std::optional<StateTensor> tensor = saved.find(name);
  if (!tensor) throw DataError(kPlace, "the saved state has no tensor " + name + ". Is it of another model?");
  return std::move(*tensor);
}

[[noreturn]] void refuse_fact(const char* key, const std::string& text) {
  throw DataError(kPlace, "the saved state's '" + std::string(key) + "' is " + text + ".");
}

bool is_count(int64_t value) { return value >= 0 && value <= kMostCounted; }

}  // namespace

void read_bytes(const StateReader& saved, const std::string& name, safetensors::DType dtype,
                std::span<const int64_t> shape, std::span<std::byte> to) {
  const StateTensor tensor = found(saved, name);
  if (tensor.dtype != dtype || !std::ranges::equal(tensor.shape, shape) || tensor.bytes.size() != to.size()) {
    throw DataError(kPlace, name + " is " + text_of(tensor.dtype, tensor.shape) + " in the saved state, but " +
                                text_of(dtype, shape) + " is needed. Is it of another model?");
  }
  if (!to.empty()) std::memcpy(to.data(), tensor.bytes.data(), to.size());
  saved.done_with(name);
}

int64_t length_of(const StateReader& saved, const std::string& name) {
  const StateTensor tensor = found(saved, name);
  if (tensor.shape.size() == 1) return tensor.shape.front();
  throw DataError(kPlace, name + " is " + text_of(tensor.dtype, tensor.shape) + " in the saved state, not a list.");
}

const Json& fact(const Json& facts, const char* key) {
  const auto value = facts.is_object() ? facts.find(key) : facts.end();
  if (value == facts.end()) refuse_fact(key, "missing");
  return *value;
}

int64_t count_fact(const Json& facts, const char* key) {
  const Json& value = fact(facts, key);
  if (!is_int(value) || !is_count(value.get<int64_t>())) refuse_fact(key, value.dump() + ", not a count");
  return value.get<int64_t>();
}

void require_counts(const std::string& name, std::span<const int64_t> counts) {
  const auto wrong = std::ranges::find_if_not(counts, is_count);
  if (wrong == counts.end()) return;
  throw DataError(kPlace, name + " holds " + std::to_string(*wrong) + " in the saved state, not a count from 0 to " +
                              std::to_string(kMostCounted) + ".");
}

double number_fact(const Json& facts, const char* key) {
  const Json& value = fact(facts, key);
  if (!value.is_number()) refuse_fact(key, value.dump() + ", not a number");
  return value.get<double>();
}

std::vector<double> numbers_fact(const Json& facts, const char* key) {
  const Json& values = fact(facts, key);
  const bool are_numbers =
      values.is_array() && std::ranges::all_of(values, [](const Json& value) { return value.is_number(); });
  if (!are_numbers) refuse_fact(key, values.dump() + ", not a list of numbers");
  return values.get<std::vector<double>>();
}

void PolicyState::begin() {
  tensors_.clear();
  index_.clear();
  facts_ = Json::object();
}

void PolicyState::reserve(int64_t bytes) {
  if (!arena_) arena_ = memory::make_host_arena();
  std::byte* all = arena_->allocate(memory::Kind::kWorkspace, bytes);
  std::fill_n(all, bytes, std::byte{0});
  arena_->free(all);
}

std::optional<StateTensor> PolicyState::find(const std::string& name) const {
  const auto at = index_.find(name);
  if (at == index_.end()) return std::nullopt;
  return tensors_[at->second];
}

std::byte* PolicyState::add_bytes(const std::string& name, safetensors::DType dtype, std::vector<int64_t> shape) {
  const size_t size = bytes_of(dtype, shape);
  Buffer& buffer = buffers_[name];
  if (buffer.size != size) {
    if (!arena_) arena_ = memory::make_host_arena();
    arena_->free(buffer.bytes);
    buffer = {arena_->allocate(memory::Kind::kWorkspace, static_cast<int64_t>(size)), size};
  }
  put_bytes(name, dtype, std::move(shape), buffer.bytes);
  return buffer.bytes;
}

void PolicyState::put_bytes(const std::string& name, safetensors::DType dtype, std::vector<int64_t> shape,
                            const std::byte* values) {
  const size_t size = bytes_of(dtype, shape);
  const auto own = buffers_.find(name);
  if (hold_ == Hold::kCopies && (own == buffers_.end() || own->second.bytes != values)) {
    std::copy_n(values, size, add_bytes(name, dtype, std::move(shape)));
    return;
  }
  if (!index_.emplace(name, tensors_.size()).second) throw InternalError("policy.save", name + " is saved twice.");
  tensors_.push_back({name, dtype, std::move(shape), {values, size}});
}

}  // namespace headrace::policy
