// XXH3-128 over what training depends on: tells changed data from the same data. One owner.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace headrace::data {

class Fingerprint {
 public:
  Fingerprint();
  void add_bytes(std::span<const std::byte> bytes);
  void add_text(std::string_view text);
  void add(int64_t value);
  std::string hex() const;  // 32 digits

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace headrace::data
