#include "headrace/store/digest.h"

#include <cstdio>

namespace headrace::store {

Digest::Digest() : state_(XXH3_createState()) { XXH3_128bits_reset(state_.get()); }

void Digest::add(std::span<const std::byte> bytes) { XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()); }

std::string Digest::hex() const {
  const XXH128_hash_t digest = XXH3_128bits_digest(state_.get());
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(digest.high64),
                static_cast<unsigned long long>(digest.low64));
  return text;
}

std::string digest_of(std::string_view text) {
  Digest digest;
  digest.add(std::as_bytes(std::span(text)));
  return digest.hex();
}

}  // namespace headrace::store
