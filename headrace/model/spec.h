// Where each parameter of a block lies in the block's flat buffer, what it is called in a Hugging Face folder, and how
// it is initialised. Plain data, built once from a ModelShape; safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/config/model_shape.h"

namespace headrace::model {

// What a parameter does in its block: the same word for every family.
enum class Role {
  kTokenEmbedding,
  kPositionEmbedding,
  kAttentionNorm,
  kAttentionNormBias,
  kQkv,
  kQkvBias,  // gpt2 stores the three as one matrix
  kQuery,
  kQueryBias,
  kKey,
  kKeyBias,
  kValue,
  kValueBias,
  kQueryNorm,
  kKeyNorm,
  kAttentionOut,
  kAttentionOutBias,
  kMlpNorm,
  kMlpNormBias,
  kGate,
  kGateBias,
  kUp,
  kUpBias,
  kDown,
  kDownBias,
  kFinalNorm,
  kFinalNormBias,
  kHead,
};

// A matrix is stored [out, in] everywhere but in gpt2, whose Conv1D stores [in, out]. A *column* is an input channel.
enum class Layout { kVector, kOutIn, kInOut };

// opt's learned positions start at this row of their table.
inline constexpr int64_t kOptPositionOffset = 2;

struct Init {
  enum class Kind { kNormal, kZeros, kOnes } kind = Kind::kZeros;
  double deviation = 0.0;  // of kNormal, mean 0
  int64_t zero_row = -1;   // this row is set to zero afterwards (the padding token); -1: none
};

struct ParameterSpec {
  std::string name;            // Hugging Face tensor name, as AutoModelForCausalLM saves it
  std::vector<int64_t> shape;  // as stored in the Hugging Face file
  int64_t offset = 0;          // [elements] into the block's flat buffer, a multiple of 16; gaps stay zero
  int64_t numel = 0;           // [elements]
  bool decays = false;         // weight decay applies: true for matrices, false for norms and biases
  Init init;
  Role role = Role::kTokenEmbedding;
  Layout layout = Layout::kVector;
};

struct BlockSpec {
  std::string name;  // "embedding", "layer.0" ..., "head"
  std::vector<ParameterSpec> parameters;
  int64_t numel = 0;  // [elements] of the flat buffer, gaps included, a multiple of 16

  // The parameter of that role, or null.
  const ParameterSpec* find(Role role) const;
};

// [0] = embedding, [1..L] = layers, [L+1] = final norm and, when untied, the head.
std::vector<BlockSpec> build_blocks(const config::ModelShape& shape);

}  // namespace headrace::model
