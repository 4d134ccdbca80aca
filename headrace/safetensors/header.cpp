#include "headrace/safetensors/header.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/safetensors/header_reader.h"

namespace headrace::safetensors {
namespace {

constexpr std::string_view kPlace = "safetensors.open";
constexpr int64_t kLengthBytes = 8;

[[noreturn]] void refuse(std::string_view source, const std::string& fact) {
  throw DataError(kPlace, std::string(source) + ": " + fact);
}

std::string text(int64_t number) { return std::to_string(number); }

// The JSON part of the file; also its end, where the data begins.
std::pair<std::string_view, int64_t> header_text(std::span<const std::byte> file, std::string_view source) {
  const auto size = static_cast<int64_t>(file.size());
  if (size < kLengthBytes) {
    refuse(source, "has " + text(size) + " bytes; a safetensors file begins with 8 bytes of header length.");
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  if (length > static_cast<uint64_t>(kMaxHeaderBytes)) {
    refuse(source, "says its header has " + std::to_string(length) + " bytes; at most " + text(kMaxHeaderBytes) +
                       " are allowed. It is probably not a safetensors file.");
  }
  if (static_cast<int64_t>(length) > size - kLengthBytes) {
    refuse(source, "says its header has " + std::to_string(length) + " bytes but only " + text(size - kLengthBytes) +
                       " follow. The file is cut short: download or copy it again.");
  }
  return {{reinterpret_cast<const char*>(file.data()) + kLengthBytes, static_cast<size_t>(length)},
          kLengthBytes + static_cast<int64_t>(length)};
}

void check_names(const std::vector<TensorInfo>& tensors, std::string_view source) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twin = std::adjacent_find(names.begin(), names.end());
  if (twin != names.end()) refuse(source, "names tensor " + in_quotes(*twin) + " twice.");
}

// Offsets inside the data, in agreement with the shape. Still relative to the data.
void check_sizes(const std::vector<TensorInfo>& tensors, int64_t data_bytes, std::string_view source) {
  for (const TensorInfo& tensor : tensors) {
    const std::string offsets = "[" + text(tensor.begin) + ", " + text(tensor.end) + "]";
    if (tensor.begin > tensor.end) {
      refuse(source, "tensor " + in_quotes(tensor.name) + " has data_offsets " + offsets + ", end before begin.");
    }
    if (tensor.end > data_bytes) {
      refuse(source, "tensor " + in_quotes(tensor.name) + " has data_offsets " + offsets + " but the file holds " +
                         text(data_bytes) + " bytes of data. It may be cut short: download or copy it again.");
    }
    const int64_t needed = bytes_of(tensor.dtype, tensor.shape, tensor.name, source);
    if (needed != tensor.end - tensor.begin) {
      refuse(source, "tensor " + in_quotes(tensor.name) + " has " + text(tensor.end - tensor.begin) +
                         " bytes of data but its dtype " + std::string(name_of(tensor.dtype)) + " and shape need " +
                         text(needed) + ".");
    }
  }
}

// Sorts by place; every byte of the data must belong to exactly one tensor.
void check_cover(std::vector<TensorInfo>& tensors, int64_t data_bytes, std::string_view source) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  int64_t covered = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.begin != covered) {
      refuse(source, "tensor " + in_quotes(tensor.name) + " begins at byte " + text(tensor.begin) +
                         " of the data but the one before ends at " + text(covered) +
                         (tensor.begin < covered ? ": they overlap." : ": a hole."));
    }
    covered = tensor.end;
  }
  if (covered != data_bytes) {
    refuse(source, "holds " + text(data_bytes) + " bytes of data but its tensors end at " + text(covered) + ".");
  }
}

}  // namespace

Header parse_header(std::span<const std::byte> file, std::string_view source) {
  const auto [json, data_begin] = header_text(file, source);
  Header header = read_header_json(json, source);
  const int64_t data_bytes = static_cast<int64_t>(file.size()) - data_begin;
  check_names(header.tensors, source);
  check_sizes(header.tensors, data_bytes, source);
  check_cover(header.tensors, data_bytes, source);
  for (TensorInfo& tensor : header.tensors) {
    tensor.begin += data_begin;
    tensor.end += data_begin;
  }
  return header;
}

int64_t bytes_of(DType dtype, std::span<const int64_t> shape, std::string_view tensor_name, std::string_view source) {
  int64_t bits = bits_of(dtype);
  bool overflows = false;
  for (const int64_t dimension : shape) {
    if (dimension < 0) refuse(source, "tensor " + in_quotes(tensor_name) + " has a negative dimension.");
    overflows = __builtin_mul_overflow(bits, dimension, &bits) || overflows;
  }
  if (overflows) refuse(source, "tensor " + in_quotes(tensor_name) + " has a shape of more than 2^63 bits.");
  if (bits % 8 != 0) {
    refuse(source, "tensor " + in_quotes(tensor_name) + " of dtype " + std::string(name_of(dtype)) + " takes " +
                       text(bits) + " bits, which is no whole number of bytes.");
  }
  return bits / 8;
}

}  // namespace headrace::safetensors
