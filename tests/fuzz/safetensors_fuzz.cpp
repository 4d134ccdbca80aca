// Any bytes as a safetensors file. Once as they are, and once with the length of a header put before them (up to the
// first newline), so that mutations of the JSON need not guess eight matching bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "headrace/base/errors.h"
#include "headrace/safetensors/header.h"
#include "tests/fuzz/expect.h"

namespace {

using headrace::safetensors::Header;
using headrace::safetensors::TensorInfo;

void try_file(std::span<const std::byte> file) {
  Header header;
  try {
    header = headrace::safetensors::parse_header(file, "fuzz");
  } catch (const headrace::DataError&) {
    return;
  }
  int64_t covered = header.tensors.empty() ? 0 : header.tensors.front().begin;
  for (const TensorInfo& tensor : header.tensors) {
    HEADRACE_FUZZ_EXPECT(tensor.begin == covered && tensor.begin >= 8);
    const int64_t length = headrace::safetensors::bytes_of(tensor.dtype, tensor.shape, tensor.name, "fuzz");
    HEADRACE_FUZZ_EXPECT(tensor.end - tensor.begin == length);
    covered = tensor.end;
  }
  HEADRACE_FUZZ_EXPECT(header.tensors.empty() || covered == static_cast<int64_t>(file.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> input(reinterpret_cast<const std::byte*>(data), size);
  try_file(input);
  const auto length = static_cast<uint64_t>(std::find(data, data + size, uint8_t{'\n'}) - data);
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(length >> (8 * i));
  file.append(reinterpret_cast<const char*>(data), size);
  // Without this the newline itself would be one byte of data too many.
  if (length < size) file.erase(8 + length, 1);
  try_file(std::as_bytes(std::span(file)));
  return 0;
}
