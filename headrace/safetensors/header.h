// The header of a safetensors file, parsed strictly: what a stranger's file says is checked here and trusted
// afterwards. Format: 8 bytes little-endian header length, that many bytes of JSON, then the data of the tensors
// without holes. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/safetensors/dtype.h"

namespace headrace::safetensors {

constexpr int64_t kMaxHeaderBytes = 100'000'000;  // the reference reader's limit

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // empty for a scalar; may hold 0
  int64_t begin = 0;           // [bytes] from the start of the file; not necessarily aligned to the element
  int64_t end = 0;
};

struct Header {
  std::vector<TensorInfo> tensors;              // in the order of their data
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

// `file` is the whole file. Throws DataError (place "safetensors.open") naming `source`, the tensor and both numbers,
// when: the header is cut short, longer than kMaxHeaderBytes, not UTF-8, not JSON or not of the format's shape; a name
// comes twice; a dtype is unknown; a size overflows; data offsets leave the file, overlap, leave holes or do not match
// the shape. Memory stays proportional to the header.
Header parse_header(std::span<const std::byte> file, std::string_view source);

// Bytes that a tensor of this type and shape takes. Throws DataError when that overflows int64_t, a dimension is
// negative or packed elements do not fill whole bytes.
int64_t bytes_of(DType dtype, std::span<const int64_t> shape, std::string_view tensor_name, std::string_view source);

}  // namespace headrace::safetensors
