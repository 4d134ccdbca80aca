#include "headrace/store/names.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <utility>

namespace headrace::store {
namespace {

constexpr std::string_view kStep = "step-";
constexpr std::array<std::pair<Hidden, std::string_view>, 3> kHiddenWords = {
    {{Hidden::kPartial, ".partial-"}, {Hidden::kReplaced, ".replaced-"}, {Hidden::kRemoved, ".removed-"}}};

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::filesystem::path checkpoints_of(const std::filesystem::path& run_folder) { return run_folder / "checkpoints"; }

std::string step_name(int64_t step) {
  char name[64];
  std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(step));
  return name;
}

std::optional<int64_t> step_in(std::string_view name) {
  if (!name.starts_with(kStep)) return std::nullopt;
  const std::string_view digits = name.substr(kStep.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  // One name a step, so that no two folders claim the same one.
  if (error != std::errc() || step < 0 || step_name(step) != name) return std::nullopt;
  return step;
}

std::string hidden_name(int64_t step, Hidden what) {
  for (const auto& [hidden, word] : kHiddenWords) {
    if (hidden == what) return "." + step_name(step) + std::string(word) + std::to_string(::getpid());
  }
  return {};
}

std::optional<HiddenName> hidden_in(std::string_view name) {
  for (const auto& [hidden, word] : kHiddenWords) {
    const size_t at = name.find(word);
    if (!name.starts_with(".") || at == std::string_view::npos || at < 1) continue;
    const auto step = step_in(name.substr(1, at - 1));
    if (step && is_number(name.substr(at + word.size()))) return HiddenName{*step, hidden};
  }
  return std::nullopt;
}

bool is_temporary_latest(std::string_view name) {
  return name.starts_with("." + std::string(kLatestName) + ".") && name.ends_with(".tmp");
}

}  // namespace headrace::store
