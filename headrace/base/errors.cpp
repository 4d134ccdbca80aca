#include "headrace/base/errors.h"

#include <system_error>

namespace headrace {
namespace {

std::string io_text(std::string_view what, std::string_view path, int error_number, std::string_view hint) {
  std::string text =
      std::string(what) + " " + std::string(path) + ": " + std::generic_category().message(error_number) + ".";
  if (!hint.empty()) text += " " + std::string(hint);
  return text;
}

}  // namespace

Error::Error(std::string_view place, std::string_view text)
    : std::runtime_error("[" + std::string(place) + "] " + std::string(text)), place_(place) {}

IoError::IoError(std::string_view place, std::string_view what, std::string_view path, int error_number,
                 std::string_view hint)
    : Error(place, io_text(what, path, error_number, hint)), error_number_(error_number) {}

}  // namespace headrace
