#include "headrace/tokenizer/tokenizer.h"

#include <cerrno>
#include <fstream>
#include <limits>

#include "headrace/base/errors.h"
#include "headrace/tokenizer/tokenizer_parts.h"
#include "headrace/tokenizer/utf8.h"

namespace headrace::tokenizer {
namespace {

constexpr size_t kMaxFile = size_t{256} << 20;  // [bytes]

std::string read_whole(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) throw IoError("tokenizer.load", "cannot read", path.string(), error.value());
  if (size > kMaxFile) {
    throw DataError("tokenizer.load", path.string() + " has " + std::to_string(size) + " bytes; at most " +
                                          std::to_string(kMaxFile) + " are read.");
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) {
    throw IoError("tokenizer.load", "cannot read", path.string(), errno);
  }
  return text;
}

// One call of encode(): borrows memory for its life, and takes back what it appended when something throws.
class Run {
 public:
  Run(const TokenizerParts& parts, std::vector<int32_t>& ids, std::vector<ByteRange>* ranges)
      : parts_(parts), memory_(parts.take_memory()), ids_(ids), ranges_(ranges) {}
  ~Run() { parts_.return_memory(std::move(memory_)); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void text(std::string_view all) {
    const size_t invalid = first_invalid_utf8(all);
    if (invalid != all.size()) {
      throw DataError("tokenizer.encode", "byte " + std::to_string(invalid) + " of " + std::to_string(all.size()) +
                                              " does not begin valid UTF-8.");
    }
    if (all.size() >= std::numeric_limits<uint32_t>::max()) {
      throw DataError("tokenizer.encode", "a text of " + std::to_string(all.size()) +
                                              " bytes; it must be under 4 GiB. Encode it in parts.");
    }
    const size_t before = ids_.size();
    try {
      cut(Piece{all, nullptr, 0, true});
    } catch (...) {
      ids_.resize(before);
      throw;
    }
  }

 private:
  void cut(const Piece& whole) {
    parts_.added.cut(whole.text, false, memory_->cuts);
    for (const auto& part : memory_->cuts) {
      const Piece piece = whole.slice(part.begin, part.end);
      if (part.id >= 0) {
        put(part.id, piece);
      } else {
        normalized(parts_.normalizer.apply(piece, memory_->normalizer, ranges_ != nullptr));
      }
    }
  }

  void normalized(const Piece& segment) {
    parts_.added.cut(segment.text, true, memory_->normalized_cuts);
    for (const auto& part : memory_->normalized_cuts) {
      const Piece piece = segment.slice(part.begin, part.end);
      if (part.id >= 0) {
        put(part.id, piece);
      } else {
        parts_.pre_tokenizer.run(piece, memory_->pre_tokenizer, ranges_ != nullptr,
                                 [this](const Piece& found) { word(found); });
      }
    }
  }

  void word(const Piece& piece) {
    if (ranges_ == nullptr) return parts_.bpe.encode(piece.text, memory_->bpe, ids_);
    parts_.bpe.encode_symbols(piece.text, memory_->bpe);
    for (const Symbol& symbol : memory_->bpe.symbols) {
      ids_.push_back(symbol.id);
      ranges_->push_back(piece.range(symbol.begin, symbol.end));
    }
  }

  void put(int32_t id, const Piece& piece) {
    ids_.push_back(id);
    if (ranges_ == nullptr) return;
    const auto base = static_cast<uint32_t>(piece.base);
    ranges_->push_back(piece.text.empty() ? ByteRange{base, base} : piece.range(0, piece.text.size()));
  }

  const TokenizerParts& parts_;
  std::unique_ptr<EncodeMemory> memory_;
  std::vector<int32_t>& ids_;
  std::vector<ByteRange>* ranges_;  // null: not wanted
};

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  const auto file = std::filesystem::is_directory(path) ? path / "tokenizer.json" : path;
  return from_json(read_whole(file), file.string());
}

Tokenizer Tokenizer::from_json(std::string_view text, std::string_view source) {
  return Tokenizer(std::make_unique<const TokenizerParts>(parse_json(text, "tokenizer.load", source), source));
}

void Tokenizer::encode(std::string_view text, std::vector<int32_t>& ids) const {
  Run(*parts_, ids, nullptr).text(text);
}

Tokenizer::Encoding Tokenizer::encode_with_offsets(std::string_view text) const {
  Encoding encoding;
  std::vector<ByteRange> ranges;
  Run(*parts_, encoding.ids, &ranges).text(text);
  encoding.begins.reserve(ranges.size());
  encoding.ends.reserve(ranges.size());
  for (const ByteRange& range : ranges) {
    encoding.begins.push_back(range.begin);
    encoding.ends.push_back(range.end);
  }
  return encoding;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  StreamDecoder stream(*this, skip_special);
  std::string text;
  for (const int32_t id : ids) text += stream.push(id);
  return text + stream.finish();
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const { return parts_->vocabulary.find(token); }
std::string_view Tokenizer::id_to_token(int32_t id) const { return parts_->vocabulary.spelling(id); }
bool Tokenizer::is_special(int32_t id) const { return parts_->added.is_special(id); }
int64_t Tokenizer::vocabulary_size() const { return parts_->vocabulary.size(); }
std::span<const int32_t> Tokenizer::prefix_special_ids() const { return parts_->prefix_special_ids; }

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : parts_(*tokenizer.parts_), skip_special_(skip_special) {}

std::string StreamDecoder::push(int32_t id) {
  std::string text;
  if (!skip_special_ || !parts_.added.is_special(id)) parts_.decoder.push(id, state_, text);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  parts_.decoder.finish(state_, text);
  return text;
}

}  // namespace headrace::tokenizer
