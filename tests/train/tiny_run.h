// A run of a few steps on a tiny random model, for the tests of the trainer.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "headrace/train/trainer.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_folder.h"

namespace headrace::train {

class TinyRun : public ::testing::Test {
 protected:
  TinyRun() : progress_(std::fopen("/dev/null", "w")) {
    support::write_tiny_folder(folder_ / "model");
    std::string chats;
    for (int i = 0; i < 24; ++i) {
      const Json user = {{"role", "user"}, {"content", "What is " + std::to_string(i) + "?"}};
      const Json assistant = {{"role", "assistant"}, {"content", "It is a number, the " + std::to_string(i) + "th."}};
      chats += Json{{"messages", {user, assistant}}}.dump() + "\n";
    }
    support::write_file(folder_ / "chat.jsonl", chats);
  }
  ~TinyRun() override { std::fclose(progress_); }

  config::TrainConfig config(const std::string& out) const {
    config::TrainConfig config;
    config.model = folder_ / "model";
    config.init = "random";
    config.data = {folder_ / "chat.jsonl"};
    config.out = folder_ / out;
    config.chat_template = "chatml";
    config.steps = 6;
    config.batch = 4;
    config.lr = 1e-2;
    config.held_out = 0.2;
    config.threads = 2;
    return config;
  }
  TrainResult run(const config::TrainConfig& config, std::function<bool()> should_stop = {}) {
    return train(config, {progress_, std::move(should_stop)});
  }
  static std::vector<Json> lines(const std::filesystem::path& path) {
    std::vector<Json> result;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) result.push_back(Json::parse(line));
    return result;
  }

  TempFolder folder_;
  std::FILE* progress_;
};

}  // namespace headrace::train
