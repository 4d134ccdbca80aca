// How files become samples: the settings that training and evaluation share. Plain data.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/config/fields.h"

namespace headrace::config {

struct CorpusSettings {
  int64_t max_length = 1024;
  std::string data_format = "auto";
  std::string text_documents = "file";
  std::string chat_template = "auto";
  std::string loss_on = "assistant";
  std::string over_long = "truncate";
  bool skip_bad_lines = false;

  template <class Visitor>
  void visit_corpus(Visitor& visit) {
    visit(FieldInfo{"max_length", "longest sequence [tokens]"}, max_length);
    visit(FieldInfo{"data_format",
                    "form of the records",
                    {"auto", "chat", "sharegpt", "instruction", "prompt", "text", "plain", "bin", "bin16", "bin32"}},
          data_format);
    visit(FieldInfo{"text_documents", "what one document of a .txt is", {"file", "paragraphs", "lines"}},
          text_documents);
    visit(FieldInfo{"chat_template", "template by name (chatml, llama3, ...); auto: recognise the model's"},
          chat_template);
    visit(FieldInfo{"loss_on", "tokens of a conversation that count", {"assistant", "all"}}, loss_on);
    visit(FieldInfo{"over_long", "what to do with sequences over max_length", {"truncate", "skip", "error"}},
          over_long);
    visit(FieldInfo{"skip_bad_lines", "count lines that cannot be read instead of stopping"}, skip_bad_lines);
  }
};

}  // namespace headrace::config
