#include "headrace/device/device.h"

#include "headrace/base/errors.h"
#include "headrace/base/units.h"
#include "headrace/device/cuda.h"

namespace headrace::device {

Kind parse(std::string_view word) {
  if (word == "cpu") return Kind::kCpu;
  if (word == "cuda") return Kind::kCuda;
  if (word == "emulated") {
    throw ConfigError(
        "device.parse",
        "device 'emulated' imitates an accelerator for offloading, and this version has only the resident "
        "policy. Use cpu.");
  }
  throw ConfigError("device.parse", "unknown device '" + std::string(word) + "'. Use cpu or cuda.");
}

std::string_view name_of(Kind kind) { return kind == Kind::kCpu ? "cpu" : "cuda"; }

std::string describe(Kind kind) {
  if (kind == Kind::kCpu) return "cpu: everything resident, fp32";
  const cuda::Facts facts = cuda::facts(0);
  return "cuda: " + facts.name + ", " + format_bytes(facts.free_bytes) + " of " + format_bytes(facts.total_bytes) +
         " free, sm_" + std::to_string(facts.major) + std::to_string(facts.minor);
}

}  // namespace headrace::device
