// Oniguruma's (Ruby's) syntax to PCRE2's: an allow-list, read left to right.
#include <algorithm>
#include <array>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/tokenizer/regex.h"
#include "headrace/tokenizer/utf8.h"

namespace headrace::tokenizer {
namespace {

// White_Space, as \s means in Oniguruma; PCRE2's own \s also has U+180E.
constexpr std::string_view kSpaces =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::array<std::string_view, 37> kCategories = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe",
    "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Co", "Cs", "Cn"};
constexpr std::array<std::string_view, 6> kGroups = {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Translator {
 public:
  Translator(std::string_view pattern, std::string_view source) : in_(pattern), source_(source) {}

  std::string run() {
    while (at_ < in_.size()) step();
    return out_;
  }

 private:
  bool next_is(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  void take(size_t count) {
    out_ += in_.substr(at_, count);
    at_ += count;
  }
  [[noreturn]] void refuse(std::string_view what) const {
    throw DataError("tokenizer.load", std::string(source_) + ": pre_tokenizer: the regex \"" + std::string(in_) +
                                          "\" uses " + std::string(what) + " at byte " + std::to_string(at_) +
                                          ", which is not supported.");
  }

  void step() {
    const char c = in_[at_];
    if (c == '\\') {
      escape(false);
    } else if (c == '[') {
      char_class();
    } else if (c == '(') {
      group();
    } else if (c == '{') {
      repeat();
    } else if (c == '^' || c == '$') {
      refuse("an anchor");
    } else if (c == ')' || c == '|' || c == '.' || c == '?' || c == '*' || c == '+') {
      if (c == ')' && !ignores_case_.empty()) ignores_case_.pop_back();
      take(1);
    } else {
      literal();
    }
  }

  void literal() {
    const char c = in_[at_];
    if (!ignores_case_.empty() && ignores_case_.back()) {
      // Oniguruma folds these two letters to one ligature or sharp s; PCRE2 folds letter by letter.
      for (const std::string_view pair : {"ss", "st", "ff", "fi", "fl"}) {
        if (next_is(pair)) refuse("two letters that fold into one without case");
      }
    }
    // PCRE2 would give the sign a meaning that Oniguruma's syntax does not.
    if (c == '}' || c == ']') refuse("an unescaped bracket");
    take(sequence_length(c));
  }

  void group() {
    bool ignores = !ignores_case_.empty() && ignores_case_.back();
    if (next_is("(*")) refuse("a verb");
    if (!next_is("(?")) {
      take(1);
    } else {
      const auto* const form =
          std::find_if(kGroups.begin(), kGroups.end(), [&](std::string_view text) { return next_is(text); });
      if (form == kGroups.end()) refuse("a group of an unknown kind");
      ignores = ignores || *form == "(?i:";
      take(form->size());
    }
    ignores_case_.push_back(ignores);
  }

  void repeat() {
    size_t end = at_ + 1;
    const auto digits = [&] {
      const size_t first = end;
      while (end < in_.size() && is_digit(in_[end])) ++end;
      return end - first;
    };
    const size_t low = digits();
    size_t high = 1;
    if (end < in_.size() && in_[end] == ',') {
      ++end;
      high = digits();
    }
    if (low == 0 || low > 4 || high > 4 || end >= in_.size() || in_[end] != '}') refuse("a brace");
    ++end;
    if (end < in_.size() && (in_[end] == '?' || in_[end] == '+')) refuse("a lazy or possessive brace");
    take(end - at_);
  }

  void property() {
    const size_t end = in_.find('}', at_);
    if (at_ + 2 >= in_.size() || in_[at_ + 2] != '{' || end == std::string_view::npos) refuse("a property");
    const std::string_view name = in_.substr(at_ + 3, end - at_ - 3);
    const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c); });
    if (!plain) refuse("a property");
    // PCRE2 widens \\p{Lu} to both cases there, Oniguruma does not.
    if (!ignores_case_.empty() && ignores_case_.back()) refuse("a property without case");
    const bool is_category = std::find(kCategories.begin(), kCategories.end(), name) != kCategories.end();
    // A bare script name would mean script extensions to PCRE2.
    out_ += std::string("\\") + in_[at_ + 1] + "{" + (is_category ? "" : "sc:") + std::string(name) + "}";
    at_ = end + 1;
  }

  // \\u00E9: four hexadecimal digits.
  void code_point() {
    const std::string_view digits = in_.substr(at_ + 2, 4);
    const bool is_hex = std::all_of(digits.begin(), digits.end(), [](char c) {
      return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    });
    if (digits.size() != 4 || !is_hex) refuse("the escape \\u");
    out_ += "\\x{" + std::string(digits) + "}";
    at_ += 6;
  }

  void escape(bool in_class) {
    if (at_ + 1 >= in_.size()) refuse("a lone backslash");
    const char c = in_[at_ + 1];
    if (c == 'p' || c == 'P') return property();
    if (c == 'u') return code_point();
    if (c == 's' || (c == 'S' && !in_class)) {
      out_ += in_class ? std::string(kSpaces) : (c == 's' ? "[" : "[^") + std::string(kSpaces) + "]";
    } else if (c == 'd' || c == 'D') {
      out_ += c == 'd' ? "\\p{Nd}" : "\\P{Nd}";
    } else if (c == 'r' || c == 'n' || c == 't' || c == 'f') {
      out_ += std::string("\\") + c;
    } else if (static_cast<uint8_t>(c) > ' ' && static_cast<uint8_t>(c) < 127 && !is_letter(c) && !is_digit(c)) {
      out_ += std::string("\\") + c;
    } else {
      refuse("the escape \\" + std::string(1, static_cast<uint8_t>(c) < 127 ? c : '?'));
    }
    at_ += 2;
  }

  void char_class() {
    take(1);
    if (at_ < in_.size() && in_[at_] == '^') take(1);
    if (at_ < in_.size() && in_[at_] == ']') refuse("an empty class");
    while (at_ < in_.size() && in_[at_] != ']') {
      if (in_[at_] == '[') refuse("a class within a class");
      if (next_is("&&")) refuse("an intersection of classes");
      if (in_[at_] == '\\') {
        escape(true);
      } else {
        take(sequence_length(in_[at_]));
      }
    }
    if (at_ >= in_.size()) refuse("a class without end");
    take(1);
  }

  std::string_view in_;
  std::string_view source_;
  size_t at_ = 0;
  std::string out_;
  std::vector<bool> ignores_case_;  // one per open group
};

}  // namespace

std::string to_pcre2(std::string_view pattern, std::string_view source) { return Translator(pattern, source).run(); }

}  // namespace headrace::tokenizer
