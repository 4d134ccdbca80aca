#include "headrace/os/memory_facts.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"

namespace headrace::os {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  try {
    return read_file(path, int64_t{1} << 20);
  } catch (const Error&) {
    return {};  // not there on this system
  }
}

std::optional<int64_t> number_at(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

// The number after `key` at the start of a line, as in "VmRSS:    1234 kB".
std::optional<int64_t> field(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') return number_at(text.substr(at + key.size()));
  }
  return std::nullopt;
}

// What a control group (version 2) and its parents still allow; pages of files that can be dropped count as free.
int64_t control_group_left(int64_t available) {
  const std::string membership = text_of("/proc/self/cgroup");
  const size_t at = membership.find("0::/");
  if (at == std::string::npos) return available;
  const size_t begin = at + 4;
  const fs::path root = "/sys/fs/cgroup";
  fs::path group = root / membership.substr(begin, membership.find('\n', begin) - begin);
  while (true) {
    const auto limit = number_at(text_of(group / "memory.max"));  // "max" is no number: no limit
    const auto used = number_at(text_of(group / "memory.current"));
    if (limit && used) {
      const int64_t droppable = field(text_of(group / "memory.stat"), "inactive_file ").value_or(0);
      available = std::min(available, std::max<int64_t>(0, *limit - *used + droppable));
    }
    if (group == root || !group.has_relative_path()) return available;
    group = group.parent_path();
  }
}

}  // namespace

MemoryFacts memory_facts() {
  MemoryFacts facts;
  const std::string status = text_of("/proc/self/status");
  facts.resident_bytes = field(status, "VmRSS:").value_or(0) * 1024;
  facts.peak_resident_bytes = field(status, "VmHWM:").value_or(0) * 1024;
  struct rusage usage {};
  if (facts.peak_resident_bytes == 0 && ::getrusage(RUSAGE_SELF, &usage) == 0) {
    facts.peak_resident_bytes = static_cast<int64_t>(usage.ru_maxrss) * 1024;
  }
  // Under some sandboxes the high-water mark lags behind the present value.
  facts.peak_resident_bytes = std::max(facts.peak_resident_bytes, facts.resident_bytes);
  const std::string machine = text_of("/proc/meminfo");
  facts.total_bytes = field(machine, "MemTotal:").value_or(0) * 1024;
  facts.available_bytes = control_group_left(field(machine, "MemAvailable:").value_or(0) * 1024);
  return facts;
}

}  // namespace headrace::os
