// What every cell of the offload bench works on: one model, one micro-batch, the machine's cores in two halves.
// The thread that builds it is the compute lane: it stays pinned to the compute cores as long as this lives.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/device/virtual_time.h"
#include "headrace/model/batch.h"
#include "headrace/model/model.h"
#include "headrace/train/offload_bench.h"

namespace headrace::train {

class BenchWorkload {
 public:
  explicit BenchWorkload(const OffloadBenchSettings& settings);
  ~BenchWorkload();
  BenchWorkload(const BenchWorkload&) = delete;
  BenchWorkload& operator=(const BenchWorkload&) = delete;

  const model::Model& model() const { return model_; }
  const std::string& name() const { return name_; }
  const std::vector<at::Tensor>& weights() const { return weights_; }  // by block, random
  const std::vector<model::Batch>& micro_batches() const { return micro_batches_; }
  const device::Cores& cores() const { return cores_; }
  int64_t tokens() const { return micro_batches_.front().num_tokens(); }
  int64_t numel(int32_t first_block = 0) const;  // [elements] of the flat buffers from this block on

  // An emulated device whose link has this rate each way.
  std::unique_ptr<device::Device> make_device(const device::Rate& link) const;

 private:
  const std::vector<int> allowed_;  // cores, before anything was pinned
  const device::Cores cores_;
  std::string name_;
  const model::Model model_;
  std::vector<at::Tensor> weights_;
  std::vector<model::Batch> micro_batches_;
};

}  // namespace headrace::train
