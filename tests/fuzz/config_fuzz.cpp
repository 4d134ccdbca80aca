// Any bytes as a model's config.json and as a training run's config.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/config/fields.h"
#include "headrace/config/model_shape.h"
#include "headrace/config/train_config.h"
#include "tests/fuzz/expect.h"

namespace {

void try_model(std::string_view text) {
  headrace::config::ModelShape shape;
  try {
    shape = headrace::config::ModelShape::parse(text, "fuzz");
  } catch (const headrace::DataError&) {
    return;
  }
  HEADRACE_FUZZ_EXPECT(shape.vocab_size > 0 && shape.hidden_size > 0 && shape.num_layers > 0);
  HEADRACE_FUZZ_EXPECT(shape.num_kv_heads > 0 && shape.num_heads % shape.num_kv_heads == 0 && shape.head_dim > 0);
  HEADRACE_FUZZ_EXPECT(static_cast<int64_t>(shape.windows.size()) == shape.num_layers);
  int64_t product = 0;
  HEADRACE_FUZZ_EXPECT(!__builtin_mul_overflow(shape.num_heads, shape.head_dim, &product));
  HEADRACE_FUZZ_EXPECT(!__builtin_mul_overflow(product, shape.hidden_size, &product));
  HEADRACE_FUZZ_EXPECT(!__builtin_mul_overflow(shape.vocab_size, shape.hidden_size, &product));
  HEADRACE_FUZZ_EXPECT(!__builtin_mul_overflow(shape.intermediate_size, shape.hidden_size, &product));
}

void try_run(std::string_view text) {
  headrace::config::TrainConfig config;
  try {
    const headrace::Json object = headrace::parse_json(text, "fuzz.parse", "fuzz");
    if (!object.is_object()) return;
    headrace::config::apply_json(object, "fuzz", config);
    headrace::config::validate(config);
  } catch (const headrace::DataError&) {
    return;
  } catch (const headrace::ConfigError&) {
    return;
  }
  HEADRACE_FUZZ_EXPECT(config.batch >= 1 && config.accumulate >= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_model(text);
  try_run(text);
  return 0;
}
