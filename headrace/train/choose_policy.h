// --policy auto: a forecast of the run from the machine's rates, and the policy that follows from it.
#pragma once

#include <functional>
#include <string>

#include "headrace/config/train_config.h"
#include "headrace/device/device.h"
#include "headrace/model/model.h"
#include "headrace/train/make_policy.h"

namespace headrace::train {

// The config with policy auto replaced by offload or zenflow and what belongs to it, after saying why in three lines,
// or by resident where a GPU holds everything; any other config as it is. The calling thread is the compute lane of `device`. Throws CapacityError when neither
// fits.
config::TrainConfig choose_policy(const config::TrainConfig& config, const model::Model& model, const LargestStep& step,
                                  device::Device& device, const std::function<void(const std::string&)>& say);

}  // namespace headrace::train
