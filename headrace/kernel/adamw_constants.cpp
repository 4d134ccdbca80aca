#include "headrace/kernel/adamw_constants.h"

#include <cmath>

namespace headrace::kernel {

AdamWConstants constants_of(const ChannelAdamW& adamw) {
  return {.keep = adamw.keep,
          .beta1 = static_cast<float>(adamw.beta1),
          .one_minus_beta1 = static_cast<float>(1 - adamw.beta1),
          .beta2 = static_cast<float>(adamw.beta2),
          .one_minus_beta2 = static_cast<float>(1 - adamw.beta2),
          .epsilon = static_cast<float>(adamw.epsilon)};
}

BiasCorrection bias_correction(const ChannelAdamW& adamw, int64_t update) {
  const auto t = static_cast<double>(update);
  return {.step_size = static_cast<float>(adamw.learning_rate / (1 - std::pow(adamw.beta1, t))),
          .second_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(adamw.beta2, t)))};
}

StepConstants constants_of(const AdamWStep& step) {
  const ChannelAdamW adamw{.learning_rate = step.learning_rate,
                           .beta1 = step.beta1,
                           .beta2 = step.beta2,
                           .epsilon = step.epsilon,
                           .keep = static_cast<float>(1 - step.learning_rate * step.weight_decay)};
  return {constants_of(adamw), bias_correction(adamw, step.step), step.gradient_scale};
}

}  // namespace headrace::kernel
