// What bytes are for: the words of docs/architecture.md. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headrace::memory {

enum class Kind : uint8_t { kWeight, kGradient, kMaster, kM, kV, kAccumulator, kActivation, kWorkspace };
inline constexpr size_t kNumKinds = 8;

// "weight", "gradient", ...; "unknown" for a value outside the enumeration.
std::string_view name_of(Kind kind);

}  // namespace headrace::memory
