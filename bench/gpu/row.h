// A figure as tools/gpu_check prints it.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "headrace/base/json.h"

namespace headrace {

// `values`, at least one, are those of the repeats.
inline Json row(const std::string& what, const std::string& unit, std::vector<double> values) {
  std::ranges::sort(values);
  return {{"what", what},
          {"unit", unit},
          {"median", values[values.size() / 2]},
          {"lowest", values.front()},
          {"highest", values.back()},
          {"repeats", values.size()}};
}

}  // namespace headrace
