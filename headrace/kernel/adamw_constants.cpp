#include "headrace/kernel/adamw_constants.h"

#include <cmath>

namespace headrace::kernel {

AdamWConstants constants_of(const AdamWStep& step) {
  const auto t = static_cast<double>(step.step);
  return {.keep = static_cast<float>(1 - step.learning_rate * step.weight_decay),
          .beta1 = static_cast<float>(step.beta1),
          .one_minus_beta1 = static_cast<float>(1 - step.beta1),
          .beta2 = static_cast<float>(step.beta2),
          .one_minus_beta2 = static_cast<float>(1 - step.beta2),
          .step_size = static_cast<float>(step.learning_rate / (1 - std::pow(step.beta1, t))),
          .second_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(step.beta2, t))),
          .epsilon = static_cast<float>(step.epsilon),
          .gradient_scale = step.gradient_scale};
}

}  // namespace headrace::kernel
