// A Hugging Face folder from flat block buffers: what AutoModelForCausalLM.from_pretrained loads. Blocking; one thread.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "headrace/model/model.h"

namespace headrace::checkpoint {

enum class ExportDtype { kFloat32, kFloat16, kBFloat16 };

// "fp32" | "float32" | "fp16" | "float16" | "bf16" | "bfloat16"; throws ConfigError otherwise.
ExportDtype parse_export_dtype(std::string_view text);

// True for the names of the files that export_model writes.
bool is_exported_file(const std::string& name);

// Writes `out`: safetensors in `dtype` (rounded to nearest even; tied weights once), config.json of `source` with its
// dtype adjusted, and the tokenizer and generation files of `source`. Everything is written to a folder beside `out`
// and renamed last, so `out` is complete or absent. Throws ConfigError when `out` exists, is not empty and was not
// written by this function; IoError when the disk refuses.
void export_model(const std::filesystem::path& source, const std::filesystem::path& out, const model::Model& model,
                  std::span<const at::Tensor> flat_weights, ExportDtype dtype);

}  // namespace headrace::checkpoint
