#include "headrace/optim/clip.h"

#include <algorithm>
#include <cmath>

namespace headrace::optim {

float clip_factor(double squared_norm, double max_norm) {
  if (max_norm == 0) return 1.0f;
  return static_cast<float>(std::min(1.0, max_norm / (std::sqrt(squared_norm) + 1e-6)));
}

}  // namespace headrace::optim
