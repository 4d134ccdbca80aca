// What is to be seen of a model folder: the files that a reader takes once there is a config.json.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "headrace/os/file.h"
#include "tests/fault/record.h"

namespace headrace::fault {

using ModelFiles = std::map<std::string, std::string>;  // name -> bytes

// A made-up one whose files all say `text`.
inline void put_model(const std::filesystem::path& folder, const std::string& text) {
  std::filesystem::create_directories(folder);
  for (const char* name : {"config.json", "generation_config.json", "tokenizer.json"}) {
    std::ofstream(folder / name) << "{\"text\": \"" + text + "\"}";
  }
}

// Empty without config.json: then it is no model folder.
inline ModelFiles model_files(const std::filesystem::path& folder) {
  ModelFiles files;
  if (!std::filesystem::exists(folder / "config.json")) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    const bool is_of_model = name.starts_with("model") || name.ends_with("config.json") || name == "tokenizer.json";
    if (is_of_model && name != "run_config.json") files[name] = os::read_file(entry.path());
  }
  return files;
}

// Fails the test when anything but one of the two, or none, is seen. `before` may be empty.
inline Outcome look_at_model(const std::filesystem::path& folder, const ModelFiles& before, const ModelFiles& after,
                             bool is_done) {
  const ModelFiles found = model_files(folder);
  EXPECT_TRUE(found.empty() || found == before || found == after) << "half of a model is seen";
  EXPECT_TRUE(!is_done || found == after) << "it returned as if all was well";
  if (found == after) return {"the new model is seen, whole", "nothing"};
  if (found.empty()) return {"no model is seen", "the model, until it is made again"};
  return {"the earlier model is seen, whole", "the new model, until it is made again"};
}

}  // namespace headrace::fault
