#include "headrace/data/split.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/rng.h"

namespace headrace::data {
namespace {

constexpr std::string_view kPlace = "data.split";

Piece whole(const Corpus& corpus, int64_t document) {
  const Corpus::Document& facts = corpus.documents()[document];
  return {document, facts.begin, facts.end, facts.end};
}

struct Group {
  uint64_t key;  // drawn from the seed and the group
  uint64_t group;
  int64_t documents;
  bool held_out;
};

// The groups that are held out, by group.
std::unordered_map<uint64_t, bool> draw(const Corpus& corpus, const SplitConfig& config) {
  std::unordered_map<uint64_t, int64_t> sizes;
  int64_t documents = 0;
  for (const Corpus::Document& document : corpus.documents()) {
    if (document.whole_file) continue;
    ++sizes[document.group];
    ++documents;
  }
  std::vector<Group> groups;
  for (const auto& [group, size] : sizes) groups.push_back({mix_seed(config.seed, group), group, size, false});
  std::sort(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return std::pair(a.key, a.group) < std::pair(b.key, b.group); });
  const int64_t wanted =
      config.count > 0 ? config.count : std::max<int64_t>(1, std::llround(config.fraction * documents));
  std::unordered_map<uint64_t, bool> held_out;
  int64_t held = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const bool hold = held < wanted && i + 1 < groups.size();
    held_out[groups[i].group] = hold;
    if (hold) held += groups[i].documents;
  }
  if (documents > 0 && (groups.size() < 2 || held < wanted)) {
    throw ConfigError(kPlace, "cannot hold out " + std::to_string(wanted) + " of " + std::to_string(documents) +
                                  " documents in " + std::to_string(groups.size()) +
                                  (groups.size() == 1 ? " group" : " groups") +
                                  ": one group at least must be left to train. Hold out less or give more data.");
  }
  return held_out;
}

// A document that is a whole file: its head is trained, its tail held out.
void split_tail(const Corpus& corpus, int64_t document, double fraction, Split& split) {
  const Piece all = whole(corpus, document);
  const int64_t tail = std::max<int64_t>(2, std::llround(fraction * static_cast<double>(all.length())));
  if (all.length() - tail < 2) {
    throw ConfigError(kPlace, "cannot hold out the tail of " + corpus.where(document) + ": it has " +
                                  std::to_string(all.length()) + " tokens in all.");
  }
  const int64_t cut = all.end - tail;
  split.train.push_back({document, all.begin, cut, cut});
  split.held_out.push_back({document, cut, all.end, all.end});
}

void check(const SplitConfig& config) {
  if (!(config.fraction >= 0 && config.fraction < 1)) {
    throw ConfigError(kPlace, "held-out fraction is " + std::to_string(config.fraction) + ", allowed is 0 to below 1.");
  }
  if (config.count < 0) throw ConfigError(kPlace, "held-out count is " + std::to_string(config.count) + ", below 0.");
  if (config.fraction > 0 && config.count > 0) {
    throw ConfigError(kPlace, "both a held-out fraction (" + std::to_string(config.fraction) + ") and a count (" +
                                  std::to_string(config.count) + ") are set. Set one.");
  }
}

}  // namespace

std::vector<Piece> all_of(const Corpus& corpus) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < corpus.documents().size(); ++i) pieces.push_back(whole(corpus, static_cast<int64_t>(i)));
  return pieces;
}

Split split_corpus(const Corpus& corpus, const SplitConfig& config) {
  check(config);
  if (config.fraction == 0 && config.count == 0) return {all_of(corpus), {}};
  const std::unordered_map<uint64_t, bool> held_out = draw(corpus, config);
  Split split;
  for (int64_t i = 0; i < static_cast<int64_t>(corpus.documents().size()); ++i) {
    const Corpus::Document& document = corpus.documents()[i];
    if (!document.whole_file) {
      (held_out.at(document.group) ? split.held_out : split.train).push_back(whole(corpus, i));
    } else if (config.count > 0) {
      throw ConfigError(kPlace, corpus.where(i) + " is one document: hold out a fraction of it instead of a count.");
    } else {
      split_tail(corpus, i, config.fraction, split);
    }
  }
  return split;
}

}  // namespace headrace::data
