// The table behind ChatTemplate: one row a template. Used by chat_template.cpp and chat_recognise.cpp only.
#pragma once

#include <array>
#include <string_view>

#include "headrace/tokenizer/chat_template.h"

namespace headrace::tokenizer {

enum class ChatKind { kChatMl, kQwen3, kLlama3, kInstruct };
enum class SystemAt { kNowhere, kFirstTurn, kLastTurn };

// How the [INST] templates differ from each other.
struct InstructStyle {
  SystemAt system_at = SystemAt::kNowhere;  // the user turn that carries the system message
  std::string_view before_system = "";
  std::string_view after_system = "";
  std::string_view before_user = "";
  std::string_view after_user = "";
  std::string_view before_assistant = "";
  std::string_view after_assistant = "";
  bool begins_every_turn = false;  // <s> before each user turn, not once
  bool strips_user = false;
  bool strips_assistant = false;
};

struct ChatTemplate::Style {
  std::string_view name;
  ChatKind kind;
  std::string_view default_system;  // ChatML: when the first message is none; Llama 3: in front of the first one
  std::string_view generation_prompt;
  std::string_view end_of_turn;
  InstructStyle instruct = {};
};

inline constexpr std::string_view kChatMlPrompt = "<|im_start|>assistant\n";
inline constexpr std::string_view kLlama3Prompt = "<|start_header_id|>assistant<|end_header_id|>\n\n";

// Sources: the tokenizer_config.json of the models named, as published.
inline constexpr std::array<ChatTemplate::Style, 12> kChatStyles = {{
    {"chatml", ChatKind::kChatMl, "", kChatMlPrompt, "<|im_end|>"},
    {"llama2",
     ChatKind::kInstruct,
     "",
     "",
     "</s>",
     {SystemAt::kFirstTurn, "<<SYS>>\n", "\n<</SYS>>\n\n", "[INST] ", " [/INST]", " ", " ", true, true, true}},
    {"llama3", ChatKind::kLlama3, "", kLlama3Prompt, "<|eot_id|>"},
    // Llama 3.1 and 3.3 Instruct; the date is the template's own.
    {"llama3.1", ChatKind::kLlama3, "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n", kLlama3Prompt,
     "<|eot_id|>"},
    // Mistral 7B Instruct v0.3: the system message appears only when a user turn is the last.
    {"mistral",
     ChatKind::kInstruct,
     "",
     "",
     "</s>",
     {SystemAt::kLastTurn, "", "\n\n", "[INST] ", "[/INST]", " ", "", false, false, true}},
    // Mistral 7B Instruct v0.1 and v0.2 as first published: no system message.
    {"mistral-v0.1",
     ChatKind::kInstruct,
     "",
     "",
     "</s>",
     {SystemAt::kNowhere, "", "", "[INST] ", " [/INST]", "", "", false, false, false}},
    // The same models' later template.
    {"mistral-v0.2",
     ChatKind::kInstruct,
     "",
     "",
     "</s>",
     {SystemAt::kFirstTurn, "", "\n\n", " [INST] ", " [/INST]", " ", "", false, false, false}},
    // Mistral Nemo Instruct 2407.
    {"mistral-nemo",
     ChatKind::kInstruct,
     "",
     "",
     "</s>",
     {SystemAt::kLastTurn, "", "\n\n", "[INST]", "[/INST]", "", "", false, false, false}},
    {"qwen2", ChatKind::kChatMl, "You are a helpful assistant.", kChatMlPrompt, "<|im_end|>"},
    {"qwen2.5", ChatKind::kChatMl, "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
     kChatMlPrompt, "<|im_end|>"},
    {"qwen3", ChatKind::kQwen3, "", kChatMlPrompt, "<|im_end|>"},
    {"smollm2", ChatKind::kChatMl, "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
     kChatMlPrompt, "<|im_end|>"},
}};

}  // namespace headrace::tokenizer
