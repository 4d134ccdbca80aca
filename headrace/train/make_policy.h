// From a run's settings to its policy: which device, what goes where, and whether it fits. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headrace/config/train_config.h"
#include "headrace/device/device.h"
#include "headrace/model/model.h"
#include "headrace/policy/policy.h"

namespace headrace::train {

// What of the data decides how much memory a step takes.
struct LargestStep {
  int64_t tokens = 0;         // of the largest micro-batch
  int32_t accumulate = 1;     // [micro-batches a step]
  int64_t scored_tokens = 0;  // of the longest document where attention holds its scores whole, on a GPU; else 0
};

// Throws ConfigError when the device cannot do what the policy asks for. Nothing is allocated.
void require_device(const config::TrainConfig& config);

// Opens the device, binds the calling thread, which is the compute lane, to its compute cores and sets libtorch's
// threads. Once, before the first tensor operation.
std::unique_ptr<device::Device> open_device(const config::TrainConfig& config);

// --device-budget; of a GPU without one, what is free there, some left for what libraries load. Throws DeviceError.
std::string device_budget_of(const config::TrainConfig& config);

// Says the plan through `say` and throws CapacityError when it does not fit a budget or this machine. Nothing is
// allocated.
void check_memory(const config::TrainConfig& config, const model::Model& model, const LargestStep& step,
                  const std::function<void(const std::string&)>& say);

// Whether the whole training state and a step's memory fit --device-budget.
bool fits_device(const config::TrainConfig& config, const model::Model& model, const LargestStep& step);
// Of the optimizer state, the share for which the device's budget has room beside an offloaded run [0..1]; 1 without a
// budget. Throws CapacityError when not even that run fits.
double spare_device_share(const config::TrainConfig& config, const model::Model& model, const LargestStep& step);
// Whether the host has room for the gradients of two of the longest windows.
bool has_room_for_slots(const config::TrainConfig& config, const model::Model& model, const LargestStep& step);

// `weights`: one flat fp32 tensor a block; the policy takes or copies them. `model` must outlive the policy.
std::unique_ptr<policy::Policy> make_policy(const config::TrainConfig& config, const model::Model& model,
                                            std::vector<at::Tensor> weights, const LargestStep& step,
                                            std::unique_ptr<device::Device> device);

}  // namespace headrace::train
