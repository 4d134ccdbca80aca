#include "headrace/device/cores.h"

namespace headrace::device {

Cores split(const std::vector<int>& cores) {
  if (cores.size() < 2) return {.compute = cores, .host = cores};
  const auto middle = cores.begin() + static_cast<std::ptrdiff_t>((cores.size() + 1) / 2);
  return {.compute = {cores.begin(), middle}, .host = {middle, cores.end()}};
}

std::string text_of(const std::vector<int>& cores) {
  std::string text;
  for (size_t first = 0; first < cores.size();) {
    size_t last = first;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cores[first]);
    if (last > first) text += "-" + std::to_string(cores[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace headrace::device
