// An existing DeepSpeed ds_config.json as settings of ours: each key is honoured, has no counterpart that changes the
// result and is named, or is refused. Source: the "DeepSpeed Configuration JSON" reference. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/config/train_config.h"

namespace headrace::config {

// Sets what the file says in `config` and returns one line for each key that was not needed or means something else
// here. "auto" leaves our value. Throws ConfigError naming a key that would change the result and is not supported, an
// unknown key, or a wrong type. `source` names the file.
std::vector<std::string> apply_deepspeed(const Json& json, std::string_view source, TrainConfig& config);

}  // namespace headrace::config
