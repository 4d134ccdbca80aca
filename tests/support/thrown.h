// What a test makes of an error that must come.
#pragma once

#include <string>

namespace headrace::support {

// The text of the error of this type that `body` throws; "nothing thrown" without one.
template <class Thrown, class Body>
std::string thrown(const Body& body) {
  try {
    body();
  } catch (const Thrown& error) {
    return error.what();
  }
  return "nothing thrown";
}

}  // namespace headrace::support
