// XXH3-128 of bytes that come in pieces: tells damage from what was written. No protection against forgery. One owner.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace headrace::store {

class Digest {
 public:
  Digest();
  void add(std::span<const std::byte> bytes);
  std::string hex() const;  // 32 digits of all bytes added so far

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

std::string digest_of(std::string_view text);

}  // namespace headrace::store
