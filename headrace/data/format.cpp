// The words for formats and policies, as the command line and config files spell them.
#include <array>
#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/data/batch.h"
#include "headrace/data/corpus.h"

namespace headrace::data {
namespace {

template <typename Value>
using Word = std::pair<std::string_view, Value>;

constexpr std::array<Word<Format>, 16> kFormats = {{{"auto", Format::automatic},
                                                    {"chat", Format::chat},
                                                    {"sharegpt", Format::chat},
                                                    {"instruction", Format::instruction},
                                                    {"alpaca", Format::instruction},
                                                    {"prompt_completion", Format::prompt_completion},
                                                    {"prompt-completion", Format::prompt_completion},
                                                    {"prompt", Format::prompt_completion},
                                                    {"text", Format::text},
                                                    {"plain", Format::plain},
                                                    {"bin", Format::bin},
                                                    {"tokens", Format::bin},
                                                    {"bin16", Format::bin16},
                                                    {"uint16", Format::bin16},
                                                    {"bin32", Format::bin32},
                                                    {"uint32", Format::bin32}}};
constexpr std::array<Word<LossOn>, 2> kLossOn = {{{"assistant", LossOn::assistant}, {"all", LossOn::all}}};
constexpr std::array<Word<OverLong>, 3> kOverLong = {
    {{"truncate", OverLong::truncate}, {"skip", OverLong::skip}, {"error", OverLong::error}}};
constexpr std::array<Word<TextDocuments>, 3> kTextDocuments = {
    {{"file", TextDocuments::file}, {"paragraphs", TextDocuments::paragraphs}, {"lines", TextDocuments::lines}}};
constexpr std::array<Word<Layout>, 4> kLayouts = {{{"documents", Layout::documents},
                                                   {"packed", Layout::packed},
                                                   {"padded_left", Layout::padded_left},
                                                   {"padded_right", Layout::padded_right}}};

template <typename Words>
auto parse(std::string_view word, const Words& words, std::string_view what) {
  std::string known;
  for (const auto& [name, value] : words) {
    if (name == word) return value;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw ConfigError("data.parse", std::string(what) + " '" + std::string(word) + "' is unknown. Known: " + known + ".");
}

template <typename Value, typename Words>
std::string_view name_in(Value value, const Words& words) {
  for (const auto& [name, known] : words) {
    if (known == value) return name;
  }
  throw InternalError("data.name", "a value without a name.");
}

}  // namespace

Format parse_format(std::string_view word) { return parse(word, kFormats, "data format"); }
LossOn parse_loss_on(std::string_view word) { return parse(word, kLossOn, "loss on"); }
OverLong parse_over_long(std::string_view word) { return parse(word, kOverLong, "over-long policy"); }
TextDocuments parse_text_documents(std::string_view word) { return parse(word, kTextDocuments, "text documents"); }
Layout parse_layout(std::string_view word) { return parse(word, kLayouts, "layout"); }
std::string_view name_of(Format format) { return name_in(format, kFormats); }
std::string_view name_of(Layout layout) { return name_in(layout, kLayouts); }

}  // namespace headrace::data
