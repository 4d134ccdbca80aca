// What lies in <run folder>/checkpoints and how it is called. A visible name is that of a whole checkpoint; whatever is
// under construction or being removed has a name that begins with a dot. Pure; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::store {

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kStateName = "state.json";
inline constexpr std::string_view kLatestName = "latest";

// <run folder>/checkpoints
std::filesystem::path checkpoints_of(const std::filesystem::path& run_folder);

// "step-00000123". Steps of more than eight digits get longer names.
std::string step_name(int64_t step);
// 123 of "step-00000123"; empty for every other name.
std::optional<int64_t> step_in(std::string_view name);

enum class Hidden {
  kPartial,   // not yet complete, or already replaced by another of the same step
  kReplaced,  // complete, to be replaced: it counts as long as no visible folder has its step
  kRemoved,   // about to be deleted
};

// ".step-00000123.partial-<pid>" of this process, likewise "replaced" and "removed".
std::string hidden_name(int64_t step, Hidden what);

struct HiddenName {
  int64_t step;
  Hidden what;
};
std::optional<HiddenName> hidden_in(std::string_view name);

// Left over from writing `latest`.
bool is_temporary_latest(std::string_view name);

}  // namespace headrace::store
