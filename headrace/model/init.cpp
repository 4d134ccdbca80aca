#include "headrace/model/init.h"

#include <string_view>

#include "headrace/base/rng.h"
#include "headrace/tensor/flat.h"
#include "headrace/tensor/torch.h"

namespace headrace::model {
namespace {

// FNV-1a: the stream of a parameter depends on its name alone.
uint64_t stream_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (unsigned char byte : name) hash = (hash ^ byte) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

void initialize(const BlockSpec& block, uint64_t seed, at::Tensor flat_weights) {
  const at::NoGradGuard no_grad;
  flat_weights.zero_();
  for (const ParameterSpec& parameter : block.parameters) {
    at::Tensor view = tensor::view_of(flat_weights, parameter.offset, parameter.shape);
    if (parameter.init.kind == Init::Kind::kOnes) view.fill_(1.0);
    if (parameter.init.kind != Init::Kind::kNormal) continue;
    Rng rng(mix_seed(seed, stream_of(parameter.name)));
    float* out = view.mutable_data_ptr<float>();
    for (int64_t i = 0; i < parameter.numel; ++i) {
      out[i] = static_cast<float>(rng.normal() * parameter.init.deviation);
    }
    if (parameter.init.zero_row >= 0) view.select(0, parameter.init.zero_row).zero_();
  }
}

}  // namespace headrace::model
