#include "headrace/data/fingerprint.h"

#include <cstdio>

namespace headrace::data {

Fingerprint::Fingerprint() : state_(XXH3_createState()) { XXH3_128bits_reset(state_.get()); }

void Fingerprint::add_bytes(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

void Fingerprint::add_text(std::string_view text) { add_bytes(std::as_bytes(std::span(text))); }

void Fingerprint::add(int64_t value) { add_bytes(std::as_bytes(std::span(&value, 1))); }

std::string Fingerprint::hex() const {
  const XXH128_hash_t digest = XXH3_128bits_digest(state_.get());
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(digest.high64),
                static_cast<unsigned long long>(digest.low64));
  return text;
}

}  // namespace headrace::data
