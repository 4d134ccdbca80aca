// The family of errors. Text: "[room.verb] fact with both numbers. Hint." Any thread may throw or hold them.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace headrace {

// Base of everything Headrace throws. `place` is "room.verb", for example "safetensors.open".
class Error : public std::runtime_error {
 public:
  Error(std::string_view place, std::string_view text);
  const std::string& place() const { return place_; }

 private:
  std::string place_;
};

// What the user typed or configured contradicts itself or is out of range. Exit code 2.
struct ConfigError : Error {
  using Error::Error;
};
// A file holds something wrong (model folder, tokenizer, data). Exit code 2.
struct DataError : Error {
  using Error::Error;
};
// A memory tier or disk cannot hold what is needed: say need, have and the knob. Exit code 2.
struct CapacityError : Error {
  using Error::Error;
};
// A device refused or failed. Exit code 1.
struct DeviceError : Error {
  using Error::Error;
};
// The run cannot go on, for example a loss that is not finite. Exit code 1.
struct RunError : Error {
  using Error::Error;
};
// Our bug. Exit code 1.
struct InternalError : Error {
  using Error::Error;
};

// The system refused: errno, path and, where it has one, the offset. Exit code 1.
class IoError : public Error {
 public:
  // Text becomes "<what> <path>: <strerror(error_number)>. <hint>".
  IoError(std::string_view place, std::string_view what, std::string_view path, int error_number,
          std::string_view hint = "");
  int error_number() const { return error_number_; }

 private:
  int error_number_;
};

}  // namespace headrace
