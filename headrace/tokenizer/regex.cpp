#include "headrace/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "headrace/base/errors.h"

namespace headrace::tokenizer {
namespace {

constexpr size_t kMaxPattern = 4096;              // [bytes]
constexpr uint32_t kMatchLimit = 10'000'000;      // backtracking steps of one match
constexpr size_t kJitStackMax = 4 * 1024 * 1024;  // [bytes] per thread

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};

}  // namespace

struct RegexMemory::State {
  std::unique_ptr<pcre2_match_data, Freer<pcre2_match_data_free>> data{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, Freer<pcre2_match_context_free>> context{pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, Freer<pcre2_jit_stack_free>> stack{
      pcre2_jit_stack_create(32 * 1024, kJitStackMax, nullptr)};
};

RegexMemory::RegexMemory() = default;
RegexMemory::RegexMemory(RegexMemory&&) noexcept = default;
RegexMemory& RegexMemory::operator=(RegexMemory&&) noexcept = default;
RegexMemory::~RegexMemory() = default;

Regex Regex::compile(std::string_view pattern, std::string_view source) {
  const auto fail = [&](const std::string& fact) {
    throw DataError("tokenizer.load", std::string(source) + ": pre_tokenizer: " + fact);
  };
  if (pattern.size() > kMaxPattern) {
    fail("a regex of " + std::to_string(pattern.size()) + " bytes; at most " + std::to_string(kMaxPattern) + ".");
  }
  const std::string translated = to_pcre2(pattern, source);
  const std::unique_ptr<pcre2_compile_context, Freer<pcre2_compile_context_free>> context(
      pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 64);
  int error = 0;
  size_t offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                   PCRE2_UTF | PCRE2_UCP, &error, &offset, context.get());
  if (code == nullptr) {
    fail("the regex \"" + std::string(pattern) + "\" is wrong: " + message_of(error) + ".");
  }
  Regex regex;
  regex.code_ = std::shared_ptr<const void>(
      code, [](const void* pointer) { pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(pointer))); });
  regex.pattern_ = pattern;
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without JIT pcre2_match interprets
  return regex;
}

std::optional<std::pair<size_t, size_t>> Regex::find(std::string_view text, size_t from, RegexMemory& memory) const {
  if (memory.state_ == nullptr) {
    memory.state_ = std::make_unique<RegexMemory::State>();
    pcre2_set_match_limit(memory.state_->context.get(), kMatchLimit);
    pcre2_jit_stack_assign(memory.state_->context.get(), nullptr, memory.state_->stack.get());
  }
  const auto& state = *memory.state_;
  const int found = pcre2_match(static_cast<const pcre2_code*>(code_.get()), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                text.size(), from, PCRE2_NO_UTF_CHECK, state.data.get(), state.context.get());
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    throw DataError("tokenizer.encode", "the pre-tokenizer's regex \"" + pattern_ + "\" gave up at byte " +
                                            std::to_string(from) + " of " + std::to_string(text.size()) + ": " +
                                            message_of(found) + ".");
  }
  const size_t* span = pcre2_get_ovector_pointer(state.data.get());
  return std::pair(span[0], span[1]);
}

}  // namespace headrace::tokenizer
