#include "headrace/device/slab.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

#include "headrace/base/errors.h"
#include "headrace/base/units.h"
#include "headrace/os/memory_facts.h"

namespace headrace::device {

std::string_view name_of(Tier tier) { return tier == Tier::kDevice ? "device" : "host"; }

std::string_view knob_of(Tier tier) { return tier == Tier::kDevice ? "--device-budget" : "--host-budget"; }

int64_t whole_pages(int64_t bytes) {
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  if (bytes < 0 || bytes > std::numeric_limits<int64_t>::max() - page) {
    throw InternalError("device.allocate", std::to_string(bytes) + " bytes asked for.");
  }
  return (bytes + page - 1) / page * page;
}

Slab map_pages(Tier tier, int64_t bytes) {
  const int64_t whole = whole_pages(bytes);
  if (whole == 0) return {};
  const auto length = static_cast<size_t>(whole);
  void* data = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) refuse_bytes(tier, whole, os::memory_facts().available_bytes, std::strerror(errno));
  return {static_cast<std::byte*>(data), whole, false, [length](std::byte* begin) { ::munmap(begin, length); }};
}

void refuse_bytes(Tier tier, int64_t need, int64_t have, std::string_view why) {
  const auto exactly = [](int64_t bytes) { return format_bytes(bytes) + " (" + format_count(bytes) + " bytes)"; };
  throw CapacityError("device.allocate", std::string(name_of(tier)) + " tier: need " + exactly(need) + ", have " +
                                             exactly(have) + ": " + std::string(why) + ". Set " +
                                             std::string(knob_of(tier)) +
                                             " to what there is, so that the plan can place less here.");
}

}  // namespace headrace::device
