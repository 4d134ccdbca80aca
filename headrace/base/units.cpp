#include "headrace/base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "headrace/base/errors.h"

namespace headrace {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 10> kSizeUnits{{{"", 1},
                                           {"B", 1},
                                           {"KB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12},
                                           {"KiB", 1024.0},
                                           {"MiB", 1048576.0},
                                           {"GiB", 1073741824.0},
                                           {"TiB", 1099511627776.0}}};
constexpr std::array<Unit, 5> kTimeUnits{{{"", 1}, {"s", 1}, {"ms", 1e-3}, {"min", 60}, {"h", 3600}}};

// The value in base units, or throws: `example` shows what would have been right.
template <size_t N>
double parse_with_unit(std::string_view text, const std::array<Unit, N>& units, std::string_view place,
                       std::string_view example) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && number >= 0 && std::isfinite(number)) {
    std::string_view name(rest, static_cast<size_t>(end - rest));
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    for (const Unit& unit : units) {
      if (unit.name == name) return number * unit.factor;
    }
  }
  throw ConfigError(place, "cannot read '" + std::string(text) + "'. Write it like " + std::string(example) + ".");
}

std::string printed(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

}  // namespace

int64_t parse_bytes(std::string_view text) {
  const double bytes = parse_with_unit(text, kSizeUnits, "units.parse_bytes", "512MiB, 8GiB or 1.5GiB");
  if (bytes >= 9.2e18) {
    throw ConfigError("units.parse_bytes", "'" + std::string(text) + "' is more than 2^63-1 bytes.");
  }
  return static_cast<int64_t>(std::llround(bytes));
}

double parse_seconds(std::string_view text) {
  return parse_with_unit(text, kTimeUnits, "units.parse_seconds", "500ms, 30s, 10min or 2h");
}

std::string format_bytes(int64_t bytes) {
  constexpr std::array<const char*, 5> names{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (std::abs(value) >= 1024.0 && unit + 1 < names.size()) {
    value /= 1024.0;
    ++unit;
  }
  const char* format = unit == 0 || std::abs(value) >= 100 ? "%.0f " : std::abs(value) >= 10 ? "%.1f " : "%.2f ";
  return printed(format, value) + names[unit];
}

std::string format_seconds(double seconds) {
  if (seconds < 1) return printed("%.2fs", seconds);
  if (seconds < 60) return printed(seconds < 10 ? "%.1fs" : "%.0fs", seconds);
  char buffer[64];
  const auto total = static_cast<long long>(seconds);
  if (total < 3600) {
    std::snprintf(buffer, sizeof buffer, "%lldm%02llds", total / 60, total % 60);
  } else {
    std::snprintf(buffer, sizeof buffer, "%lldh%02lldm", total / 3600, total % 3600 / 60);
  }
  return buffer;
}

std::string format_count(int64_t count) {
  std::string digits = std::to_string(count);
  const int64_t first = digits[0] == '-' ? 1 : 0;
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

}  // namespace headrace
