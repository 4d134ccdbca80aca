// Which tokens of a record are learned: the assistant's of every turn with the token that ends the turn, a completion,
// or the whole of a text. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "headrace/data/codec.h"
#include "headrace/data/corpus.h"
#include "headrace/data/record.h"
#include "headrace/data/sample.h"

namespace headrace::data {

// A token is trained when its first byte lies in one of the ranges (ascending, [begin, end) bytes).
std::vector<uint8_t> mark_trained(std::span<const int64_t> begins, std::span<const std::pair<int64_t, int64_t>> ranges);

// Tokens and mask of a record, neither cut nor dropped. Throws DataError about the record (no chat template for a chat,
// a role that the template does not know, text that is not UTF-8).
Sample make_sample(const Record& record, const Codec& codec, LossOn loss_on, bool append_end_of_text);

}  // namespace headrace::data
