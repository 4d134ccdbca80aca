#include "headrace/checkpoint/export.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/os/file.h"
#include "headrace/os/folder.h"
#include "headrace/safetensors/file.h"
#include "headrace/safetensors/writer.h"
#include "headrace/tensor/dtype.h"
#include "headrace/tensor/flat.h"
#include "headrace/tensor/torch.h"

namespace headrace::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlace = "checkpoint.export";
constexpr std::array kCarriedFiles = {"generation_config.json",
                                      "tokenizer.json",
                                      "tokenizer_config.json",
                                      "special_tokens_map.json",
                                      "added_tokens.json",
                                      "vocab.json",
                                      "merges.txt",
                                      "tokenizer.model",
                                      "chat_template.jinja",
                                      "chat_template.json"};
constexpr int64_t kMaxCarriedBytes = int64_t{256} << 20;

at::ScalarType scalar_type_of(ExportDtype dtype) {
  if (dtype == ExportDtype::kFloat16) return at::kHalf;
  return dtype == ExportDtype::kBFloat16 ? at::kBFloat16 : at::kFloat;
}

const char* name_of(ExportDtype dtype) {
  if (dtype == ExportDtype::kFloat16) return "float16";
  return dtype == ExportDtype::kBFloat16 ? "bfloat16" : "float32";
}

bool is_weight_file(const std::string& name) {
  return name.starts_with("model") && (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json"));
}

bool is_our_weight_file(const fs::path& path) {
  try {
    const safetensors::File file = safetensors::File::open(path);
    const auto producer = file.metadata().find("producer");
    return producer != file.metadata().end() && producer->second == "headrace";
  } catch (const DataError&) {
    return false;  // no such file at all; that a disk cannot be read is another matter
  }
}

// What speaks against replacing `out`: empty when it holds nothing but what an export writes, with weights of ours.
std::string foreign_content(const fs::path& out) {
  if (!fs::is_directory(out)) return "it is a file";
  bool has_our_weights = false;
  for (const fs::directory_entry& entry : fs::directory_iterator(out)) {
    const std::string name = entry.path().filename().string();
    if (!is_exported_file(name)) return "it holds " + name;
    if (is_weight_file(name)) has_our_weights = has_our_weights || is_our_weight_file(entry.path());
  }
  return has_our_weights ? "" : "its weights were not written by headrace";
}

void check_replaceable(const fs::path& out) {
  if (!fs::exists(out) || (fs::is_directory(out) && fs::is_empty(out))) return;
  const std::string foreign = foreign_content(out);
  if (foreign.empty()) return;
  throw ConfigError(kPlace, out.string() + " is not an earlier export: " + foreign + ". Choose another folder.");
}

std::string adjusted_config(const fs::path& source, ExportDtype dtype) {
  const fs::path path = source / "config.json";
  const std::string text = os::read_file(path, int64_t{16} << 20);
  parse_json(text, kPlace, path.string());  // for its checks; the order of keys is kept below
  OrderedJson config = OrderedJson::parse(text);
  if (!config.is_object()) throw DataError(kPlace, path.string() + " is not a JSON object.");
  const bool is_new_spelling = config.contains("dtype");  // transformers 5; 4 reads and writes torch_dtype
  if (is_new_spelling) config["dtype"] = name_of(dtype);
  if (!is_new_spelling || config.contains("torch_dtype")) config["torch_dtype"] = name_of(dtype);
  return config.dump(2) + "\n";
}

std::vector<safetensors::PlannedTensor> plan_of(const model::Model& model, at::ScalarType type) {
  std::vector<safetensors::PlannedTensor> plan;
  for (const model::BlockSpec& block : model.blocks()) {
    for (const model::ParameterSpec& parameter : block.parameters) {
      plan.push_back({parameter.name, tensor::dtype_of(type), parameter.shape});
    }
  }
  return plan;
}

at::Tensor rounded(const at::Tensor& values, at::ScalarType type, const std::string& name) {
  const at::Tensor converted = values.to(type).contiguous();
  // A finite weight beyond fp16's range would silently become infinite.
  if (type == at::kHalf && !at::equal(converted.isfinite(), values.isfinite())) {
    throw ConfigError(kPlace, name + " holds values up to " + std::to_string(values.abs().max().item<float>()) +
                                  ", beyond float16's 65504. Use bfloat16 or float32.");
  }
  return converted;
}

void write_weights(const fs::path& folder, const model::Model& model, std::span<const at::Tensor> flat_weights,
                   at::ScalarType type) {
  safetensors::WriterOptions options;
  options.metadata["producer"] = "headrace";
  safetensors::Writer writer(folder, plan_of(model, type), options);
  for (int64_t i = 0; i < model.num_blocks(); ++i) {
    for (const model::ParameterSpec& parameter : model.blocks()[i].parameters) {
      const at::Tensor values = tensor::view_of(flat_weights[i], parameter.offset, parameter.shape).cpu();
      const at::Tensor converted = rounded(values, type, parameter.name);
      writer.write(parameter.name, {static_cast<const std::byte*>(converted.const_data_ptr()),
                                    static_cast<size_t>(converted.nbytes())});
    }
  }
  writer.finish();
}

void carry_files(const fs::path& source, const fs::path& folder) {
  for (const char* name : kCarriedFiles) {
    if (!fs::is_regular_file(source / name)) continue;
    os::write_file_atomically(folder / name, os::read_file(source / name, kMaxCarriedBytes));
  }
}

// The error that brings us here matters more; the next export tries again.
void remove_if_possible(const fs::path& folder) {
  try {
    os::remove_tree(folder);
  } catch (const Error&) {
  }
}

}  // namespace

ExportDtype parse_export_dtype(std::string_view text) {
  if (text == "fp32" || text == "float32") return ExportDtype::kFloat32;
  if (text == "fp16" || text == "float16") return ExportDtype::kFloat16;
  if (text == "bf16" || text == "bfloat16") return ExportDtype::kBFloat16;
  throw ConfigError(kPlace, "dtype \"" + std::string(text) + "\" is not known; fp32, fp16 and bf16 are.");
}

bool is_exported_file(const std::string& name) {
  return is_weight_file(name) || name == "config.json" || std::ranges::find(kCarriedFiles, name) != kCarriedFiles.end();
}

void export_model(const fs::path& source, const fs::path& out, const model::Model& model,
                  std::span<const at::Tensor> flat_weights, ExportDtype dtype) {
  const at::NoGradGuard no_grad;
  if (std::ssize(flat_weights) != model.num_blocks()) {
    throw InternalError(kPlace, std::to_string(flat_weights.size()) + " buffers for " +
                                    std::to_string(model.num_blocks()) + " blocks.");
  }
  const fs::path target = fs::absolute(out).lexically_normal();
  const fs::path final_path = target.has_filename() ? target : target.parent_path();  // without a closing slash
  std::error_code ignored;
  if (fs::equivalent(source, final_path, ignored)) {
    throw ConfigError(kPlace, final_path.string() + " is the folder that the model came from. Choose another folder.");
  }
  check_replaceable(final_path);
  fs::path partial = final_path;
  partial += ".partial";
  os::remove_tree(partial);  // of an export that was killed
  os::create_folders(partial);
  try {
    write_weights(partial, model, flat_weights, scalar_type_of(dtype));
    carry_files(source, partial);
    os::write_file_atomically(partial / "config.json", adjusted_config(source, dtype));
    os::publish_folder(partial, final_path, os::IfExists::kReplace);
  } catch (...) {
    remove_if_possible(partial);
    throw;
  }
}

}  // namespace headrace::checkpoint
