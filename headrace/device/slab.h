// Memory of a tier, taken from the system in one piece: blocks and optimizer state are laid out inside. Exact to a
// page; caching allocators round 2.5 GiB up to 4. Move-only; any thread may use the bytes, one owner destroys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace headrace::device {

enum class Tier { kDevice, kHost };

std::string_view name_of(Tier tier);  // "device", "host"
std::string_view knob_of(Tier tier);  // "--device-budget", "--host-budget"

class Slab {
 public:
  using Release = std::function<void(std::byte*)>;  // must not throw

  Slab() = default;  // no bytes
  Slab(std::byte* data, int64_t bytes, bool is_page_locked, Release release)
      : memory_(data, std::move(release)), bytes_(bytes), is_page_locked_(is_page_locked) {}

  std::byte* data() const { return memory_.get(); }  // aligned to a page; null without bytes
  int64_t bytes() const { return memory_ ? bytes_ : 0; }
  bool is_page_locked() const { return memory_ && is_page_locked_; }

 private:
  std::unique_ptr<std::byte, Release> memory_;
  int64_t bytes_ = 0;
  bool is_page_locked_ = false;
};

// `bytes` rounded up to whole pages of this machine. Throws InternalError on negatives.
int64_t whole_pages(int64_t bytes);

// Pageable memory straight from the system; reads as zero until written. `tier` is what the refusal names. Throws
// CapacityError when the system refuses; it may also grant more than it has and end the process later, which is what
// budgets are for.
Slab map_pages(Tier tier, int64_t bytes);

// The refusal in the form all devices share: "[device.allocate] host tier: need 4 GiB (.. bytes), have ..: <why>. <knob>".
[[noreturn]] void refuse_bytes(Tier tier, int64_t need, int64_t have, std::string_view why);

}  // namespace headrace::device
