#include "headrace/tokenizer/bpe.h"

#include <algorithm>

#include "headrace/tokenizer/utf8.h"

namespace headrace::tokenizer {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";
constexpr uint32_t kNone = UINT32_MAX;

}  // namespace

std::optional<int32_t> Bpe::whole_word(std::string_view word) const {
  if (!byte_level_) return vocabulary_->find(word);
  const auto found = words_.find(std::string(word));
  if (found == words_.end()) return std::nullopt;
  return found->second;
}

void Bpe::encode(std::string_view word, Memory& memory, std::vector<int32_t>& ids) const {
  if (!parts_at_marks_ || word.size() <= WordCache::kMaxWord) return encode_part(word, memory, ids);
  if (ignore_merges_) {
    if (const auto id = whole_word(word)) return ids.push_back(*id);
  }
  // Cut in front of every mark that follows something else; the parts cannot merge with each other.
  size_t begin = 0;
  size_t at = 1;
  while ((at = word.find(kMark, at)) != std::string_view::npos) {
    const bool in_run = at >= kMark.size() && word.substr(at - kMark.size(), kMark.size()) == kMark;
    if (!in_run) {
      encode_part(word.substr(begin, at - begin), memory, ids);
      begin = at;
    }
    at += kMark.size();
  }
  encode_part(word.substr(begin), memory, ids);
}

void Bpe::encode_part(std::string_view part, Memory& memory, std::vector<int32_t>& ids) const {
  WordCache::Line* line = nullptr;
  if (part.size() <= WordCache::kMaxWord && !part.empty()) {
    line = &memory.cache.line_of(part);
    if (WordCache::holds(*line, part)) {
      ids.insert(ids.end(), line->ids.begin(), line->ids.begin() + line->count);
      return;
    }
  }
  encode_symbols(part, memory);
  const size_t first = ids.size();
  for (const Symbol& symbol : memory.symbols) ids.push_back(symbol.id);
  const size_t count = ids.size() - first;
  if (line != nullptr && count <= WordCache::kMaxIds) {
    WordCache::store(*line, part, std::span(ids).subspan(first, count));
  }
}

void Bpe::encode_symbols(std::string_view word, Memory& memory) const {
  memory.symbols.clear();
  if (ignore_merges_) {
    if (const auto id = whole_word(word)) {
      memory.symbols.push_back({*id, 0, static_cast<uint32_t>(word.size())});
      return;
    }
  }
  split_symbols(word, memory.symbols);
  if (memory.symbols.size() <= kShortWord) {
    merge_short(memory);
  } else {
    merge_long(memory);
  }
}

// The symbols before any merge: bytes, or characters with fallback to bytes or to the unknown token.
void Bpe::split_symbols(std::string_view word, std::vector<Symbol>& symbols) const {
  bool after_unknown = false;
  for (size_t i = 0; i < word.size();) {
    const size_t bytes = byte_level_ ? 1 : sequence_length(word[i]);
    const uint32_t begin = static_cast<uint32_t>(i);
    const uint32_t end = begin + static_cast<uint32_t>(bytes);
    const std::string_view character = word.substr(i, bytes);
    i += bytes;
    int32_t id = -1;
    if (byte_level_) {
      id = byte_ids_[static_cast<uint8_t>(character[0])];
    } else if (const auto found = vocabulary_->find(character)) {
      id = *found;
    }
    if (id >= 0) {
      symbols.push_back({id, begin, end});
      after_unknown = false;
    } else if (byte_fallback_) {
      for (uint32_t k = begin; k < end; ++k) {
        symbols.push_back({byte_ids_[static_cast<uint8_t>(character[k - begin])], k, k + 1});
      }
    } else if (unknown_ >= 0) {
      if (after_unknown && fuse_unknown_) {
        symbols.back().end = end;
      } else {
        symbols.push_back({unknown_, begin, end});
      }
      after_unknown = true;
    }
  }
}

void Bpe::merge_short(Memory& memory) const {
  auto& symbols = memory.symbols;
  auto& merges = memory.merges;
  if (symbols.size() < 2) return;
  merges.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i) merges.push_back(merges_.find(symbols[i].id, symbols[i + 1].id));
  while (true) {
    size_t best = 0;
    for (size_t i = 1; i < merges.size(); ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges.empty() || merges[best].rank == kNoMerge) return;
    const auto at = static_cast<std::ptrdiff_t>(best);
    symbols[best].id = merges[best].id;
    symbols[best].end = symbols[best + 1].end;
    symbols.erase(symbols.begin() + at + 1);
    merges.erase(merges.begin() + at);
    if (best > 0) merges[best - 1] = merges_.find(symbols[best - 1].id, symbols[best].id);
    if (best < merges.size()) merges[best] = merges_.find(symbols[best].id, symbols[best + 1].id);
  }
}

void Bpe::merge_long(Memory& memory) const {
  auto& symbols = memory.symbols;
  auto& previous = memory.previous;
  auto& next = memory.next;
  auto& heap = memory.heap;
  const auto count = static_cast<uint32_t>(symbols.size());
  previous.resize(count);
  next.resize(count);
  heap.clear();
  const auto later = [](const Memory::Candidate& a, const Memory::Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  };
  const auto propose = [&](uint32_t left, uint32_t right, bool sorted) {
    const Merge merge = merges_.find(symbols[left].id, symbols[right].id);
    if (merge.rank == kNoMerge) return;
    heap.push_back({merge.rank, left, merge.id});
    if (sorted) std::push_heap(heap.begin(), heap.end(), later);
  };
  for (uint32_t i = 0; i < count; ++i) {
    previous[i] = i == 0 ? kNone : i - 1;
    next[i] = i + 1 == count ? kNone : i + 1;
    if (i + 1 < count) propose(i, i + 1, false);
  }
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    const Memory::Candidate top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    const uint32_t right = next[top.position];
    // Stale when the symbol is gone (id -1) or has since become part of another pair.
    if (symbols[top.position].id < 0 || right == kNone) continue;
    const Merge now = merges_.find(symbols[top.position].id, symbols[right].id);
    if (now.rank == kNoMerge || now.id != top.id) continue;
    symbols[top.position].id = top.id;
    symbols[top.position].end = symbols[right].end;
    symbols[right].id = -1;
    next[top.position] = next[right];
    if (next[right] != kNone) previous[next[right]] = top.position;
    if (previous[top.position] != kNone) propose(previous[top.position], top.position, true);
    if (next[top.position] != kNone) propose(top.position, next[top.position], true);
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.id < 0; });
}

}  // namespace headrace::tokenizer
