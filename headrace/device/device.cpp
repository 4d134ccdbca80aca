#include "headrace/device/device.h"

#include <cstring>

#include "headrace/base/errors.h"

namespace headrace::device {

Kind parse(std::string_view word) {
  for (const Kind kind : {Kind::kCpu, Kind::kEmulated, Kind::kCuda}) {
    if (word == name_of(kind)) return kind;
  }
  throw ConfigError("device.parse", "unknown device '" + std::string(word) + "'. Use cpu, emulated or cuda.");
}

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kCpu:
      return "cpu";
    case Kind::kEmulated:
      return "emulated";
    case Kind::kCuda:
      return "cuda";
  }
  return "unknown";
}

std::string_view name_of(Direction direction) { return direction == Direction::kToDevice ? "h2d" : "d2h"; }

void Device::read(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

void Device::write(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace headrace::device
