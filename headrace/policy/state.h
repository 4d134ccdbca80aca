// A policy's training state as named tensors, the same under every policy: what a checkpoint holds. By the parameter's
// Hugging Face name:
//   master/<name>, m/<name>, v/<name>  fp32 in the parameter's shape; a frozen parameter has its master alone
//   updates/<name>                     int64: how often each channel was updated (zenflow/columns.h); one number where
//                                      all of the parameter's elements were updated as often
// docs/formats.md lists what ZenFlow adds. Free of torch; one owner at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/memory/arena.h"
#include "headrace/safetensors/dtype.h"

namespace headrace::policy {

struct StateTensor {
  std::string name;
  safetensors::DType dtype = safetensors::DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // row-major; aligned to nothing
};

// Where a policy takes a saved state from.
class StateReader {
 public:
  virtual ~StateReader() = default;
  // Empty when there is no such tensor.
  virtual std::optional<StateTensor> find(const std::string& name) const = 0;
  // Its bytes are not needed any more.
  virtual void done_with(const std::string&) const {}
  // What the policy that saved it says of itself; an object with at least "kind" and "updates".
  virtual const Json& facts() const = 0;
};

template <class T>
constexpr safetensors::DType dtype_of();
template <>
constexpr safetensors::DType dtype_of<float>() {
  return safetensors::DType::kF32;
}
template <>
constexpr safetensors::DType dtype_of<double>() {
  return safetensors::DType::kF64;
}
template <>
constexpr safetensors::DType dtype_of<int32_t>() {
  return safetensors::DType::kI32;
}
template <>
constexpr safetensors::DType dtype_of<int64_t>() {
  return safetensors::DType::kI64;
}

// Copies a tensor of this type and shape. Throws DataError (place "policy.restore") naming the tensor, what it is and
// what it should be; also when it is missing.
void read_bytes(const StateReader& saved, const std::string& name, safetensors::DType dtype,
                std::span<const int64_t> shape, std::span<std::byte> to);

template <class T>
void read_tensor(const StateReader& saved, const std::string& name, std::span<const int64_t> shape, std::span<T> to) {
  read_bytes(saved, name, dtype_of<T>(), shape, std::as_writable_bytes(to));
}

// [elements] of a tensor of one dimension. Throws likewise.
int64_t length_of(const StateReader& saved, const std::string& name);

template <class T>
std::vector<T> read_list(const StateReader& saved, const std::string& name) {
  const int64_t length = length_of(saved, name);
  std::vector<T> list(static_cast<size_t>(length));
  read_tensor<T>(saved, name, std::span(&length, 1), list);
  return list;
}

// A fact by its key. Throws DataError naming it when it is missing or of another type.
const Json& fact(const Json& facts, const char* key);
int64_t count_fact(const Json& facts, const char* key);  // 0 to kMostCounted
double number_fact(const Json& facts, const char* key);
std::vector<double> numbers_fact(const Json& facts, const char* key);  // an array of them

inline constexpr int64_t kMostCounted = int64_t{1} << 53;
// Throws DataError naming the tensor when one of its numbers is no count.
void require_counts(const std::string& name, std::span<const int64_t> counts);

// A state in memory. Used again for the next one it takes no new memory.
class PolicyState final : public StateReader {
 public:
  // kViews: what a policy holds as it is saved is referred to, not copied, and changes with its next step.
  enum class Hold { kCopies, kViews };
  explicit PolicyState(Hold hold = Hold::kCopies) : hold_(hold) {}

  // Takes memory for tensors of so many bytes together and touches it, which would hold up the first copy.
  void reserve(int64_t bytes);
  // Empties it; memory stays for tensors of the same names.
  void begin();

  // Room for a tensor that the caller fills; its content is undefined.
  template <class T>
  std::span<T> add(const std::string& name, std::vector<int64_t> shape) {
    std::byte* bytes = add_bytes(name, dtype_of<T>(), std::move(shape));
    return {reinterpret_cast<T*>(bytes), tensors_.back().bytes.size() / sizeof(T)};
  }
  // Such a tensor again.
  template <class T>
  std::span<T> added(const std::string& name) {
    const Buffer& buffer = buffers_.at(name);
    return {reinterpret_cast<T*>(buffer.bytes), buffer.size / sizeof(T)};
  }
  // A tensor that lies somewhere already.
  template <class T>
  void put(const std::string& name, std::vector<int64_t> shape, const T* values) {
    put_bytes(name, dtype_of<T>(), std::move(shape), reinterpret_cast<const std::byte*>(values));
  }
  void set_facts(Json facts) { facts_ = std::move(facts); }

  const std::vector<StateTensor>& tensors() const { return tensors_; }
  std::optional<StateTensor> find(const std::string& name) const override;
  const Json& facts() const override { return facts_; }

 private:
  struct Buffer {
    std::byte* bytes = nullptr;
    size_t size = 0;
  };
  std::byte* add_bytes(const std::string& name, safetensors::DType dtype, std::vector<int64_t> shape);
  void put_bytes(const std::string& name, safetensors::DType dtype, std::vector<int64_t> shape,
                 const std::byte* values);

  const Hold hold_;
  std::shared_ptr<memory::Arena> arena_;   // of the buffers: in large pages, which matters the first time
  std::vector<StateTensor> tensors_;       // in the order of saving
  std::map<std::string, size_t> index_;    // into tensors_
  std::map<std::string, Buffer> buffers_;  // by name, of this state and of earlier ones
  Json facts_ = Json::object();
};

struct RestoreOptions {
  // What cannot be kept exactly is replaced by the nearest that can, and said; else it is refused with a ConfigError.
  bool accepts_changes = false;
  std::function<void(const std::string&)> say = {};
};

}  // namespace headrace::policy
