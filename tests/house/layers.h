// The house's order from the ground up: the one place where a room's layer is written down. docs/architecture.md
// draws the same picture.
#pragma once

#include <map>
#include <string>

namespace headrace::house {

struct Layers {
  std::map<std::string, int> layer_of;  // room -> layer; includes go to lower layers only
  int torch_line = 0;                   // rooms of this layer and above may include torch
};

inline Layers layers_of_the_house() {
  return {.layer_of = {{"base", 0},        {"os", 1},        {"config", 1}, {"device", 2},   {"telemetry", 2},
                       {"safetensors", 2}, {"tokenizer", 2}, {"kernel", 2}, {"data", 3},     {"measure", 3},
                       {"memory", 3},      {"store", 3},     {"graph", 3},  {"transfer", 4}, {"plan", 4},
                       {"tensor", 5},      {"model", 6},     {"optim", 6},  {"policy", 7},   {"checkpoint", 8},
                       {"train", 9},       {"cli", 10},      {"python", 10}},
          .torch_line = 5};
}

}  // namespace headrace::house
