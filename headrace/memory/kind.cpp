#include "headrace/memory/kind.h"

#include <array>

namespace headrace::memory {

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, kNumKinds> kNames = {"weight", "gradient",    "master",     "m",
                                                              "v",      "accumulator", "activation", "workspace"};
  const auto index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace headrace::memory
