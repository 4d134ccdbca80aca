// Settings of the commands that do not train. Plain data; the defaults are those of --help.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/config/corpus_settings.h"

namespace headrace::config {

struct EvalConfig : CorpusSettings {
  std::string model;
  std::vector<std::string> data;
  int64_t batch = 8;
  std::string layout = "documents";
  int64_t threads = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit(FieldInfo{"model", "Hugging Face model folder"}, model);
    visit(FieldInfo{"data", "files to score: .jsonl, .txt or .bin, the first two also .gz or .zst"}, data);
    visit(FieldInfo{"batch", "sequences scored at a time"}, batch);
    visit(FieldInfo{"layout", "how sequences share a batch", {"documents", "packed"}}, layout);
    visit_corpus(visit);
    visit(FieldInfo{"threads", "compute threads; 0 for all cores"}, threads);
  }
};

struct GenerateConfig {
  std::string model;
  std::string prompt;
  bool chat = false;
  std::string system;
  std::string chat_template = "auto";
  int64_t max_new_tokens = 128;
  double temperature = 0;
  int64_t top_k = 0;
  double top_p = 1;
  int64_t seed = 0;
  int64_t threads = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit(FieldInfo{"model", "Hugging Face model folder"}, model);
    visit(FieldInfo{"prompt", "text to go on from"}, prompt);
    visit(FieldInfo{"chat", "take the prompt as a user's message and answer it"}, chat);
    visit(FieldInfo{"system", "system message of the conversation, with --chat"}, system);
    visit(FieldInfo{"chat_template", "template by name (chatml, llama3, ...); auto: recognise the model's"},
          chat_template);
    visit(FieldInfo{"max_new_tokens", "longest answer [tokens]"}, max_new_tokens);
    visit(FieldInfo{"temperature", "0: always the likeliest token; 1: as the model says"}, temperature);
    visit(FieldInfo{"top_k", "sample among so many of the likeliest tokens; 0: all"}, top_k);
    visit(FieldInfo{"top_p", "sample among the likeliest tokens of this total probability (0..1]"}, top_p);
    visit(FieldInfo{"seed", "of the sampling"}, seed);
    visit(FieldInfo{"threads", "compute threads; 0 for all cores"}, threads);
  }
};

struct ExportConfig {
  std::string model;
  std::string out;
  std::string checkpoint;
  std::string dtype = "auto";
  std::string init = "pretrained";
  int64_t seed = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit(FieldInfo{"model", "Hugging Face model folder to read"}, model);
    visit(FieldInfo{"out", "Hugging Face model folder to write"}, out);
    visit(FieldInfo{"checkpoint", "folder of a run or of one of its checkpoints: its weights instead of the model's"},
          checkpoint);
    visit(FieldInfo{"dtype", "numbers in the result; auto: as in the model folder", {"auto", "fp32", "bf16", "fp16"}},
          dtype);
    visit(FieldInfo{"init", "weights: the folder's, or random ones from its config alone", {"pretrained", "random"}},
          init);
    visit(FieldInfo{"seed", "of the random weights"}, seed);
  }
};

struct TokenizeConfig {
  std::string model;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit(FieldInfo{"model", "Hugging Face model folder, or a tokenizer.json"}, model);
  }
};

}  // namespace headrace::config
