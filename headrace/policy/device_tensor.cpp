#include "headrace/policy/device_tensor.h"

#include <ATen/ops/from_blob.h>

namespace headrace::policy {

at::Device torch_device(const device::Device& device) {
  const int index = device.gpu_index();
  return index < 0 ? at::Device(at::kCPU) : at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
}

at::Tensor tensor_at(const device::Device& device, float* at, int64_t numel) {
  return at::from_blob(at, {numel}, at::TensorOptions(at::kFloat).device(torch_device(device)));
}

}  // namespace headrace::policy
