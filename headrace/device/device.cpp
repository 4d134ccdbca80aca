#include "headrace/device/device.h"

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

}  // namespace headrace::device
