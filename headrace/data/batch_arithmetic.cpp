#include "headrace/data/batch_arithmetic.h"

#include <string>

#include "headrace/base/errors.h"

namespace headrace::data {
namespace {

constexpr std::string_view kPlace = "data.resolve_batch";
constexpr int64_t kMost = int64_t{1} << 20;  // far beyond use, and no product of three overflows

void check_range(std::string_view name, int64_t value) {
  if (value >= 1 && value <= kMost) return;
  throw ConfigError(kPlace, std::string(name) + " is " + std::to_string(value) + ", allowed is 1 to 1048576.");
}

std::string name_ranks(int64_t ranks) { return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks"); }

// What would satisfy global = micro x accumulate x ranks, changing as little as possible.
std::string proposal(int64_t global, int64_t micro, int64_t ranks) {
  const int64_t per_rank = global / ranks;
  if (global % ranks != 0) return "Choose a global batch that is a multiple of " + std::to_string(ranks) + ".";
  if (per_rank % micro == 0) return "Use accumulate " + std::to_string(per_rank / micro) + ".";
  int64_t divisor = micro;
  while (per_rank % divisor != 0) --divisor;
  return "Use micro batch " + std::to_string(divisor) + " with accumulate " + std::to_string(per_rank / divisor) + ".";
}

[[noreturn]] void refuse(const BatchRequest& request, int64_t micro) {
  const int64_t global = *request.global_batch;
  std::string text = "global batch " + std::to_string(global) + ", micro batch " + std::to_string(micro);
  if (request.accumulate) text += ", accumulate " + std::to_string(*request.accumulate);
  text += " and " + name_ranks(request.ranks) + " do not fit: ";
  if (request.accumulate) {
    text += std::to_string(micro) + " x " + std::to_string(*request.accumulate) + " x " +
            std::to_string(request.ranks) + " = " + std::to_string(micro * *request.accumulate * request.ranks) +
            ", not " + std::to_string(global) + ". ";
  } else {
    text += std::to_string(global) + " is no multiple of " + std::to_string(micro * request.ranks) + ". ";
  }
  throw ConfigError(kPlace, text + proposal(global, micro, request.ranks));
}

}  // namespace

BatchSizes resolve_batch(const BatchRequest& request) {
  if (request.global_batch) check_range("global batch", *request.global_batch);
  if (request.micro_batch) check_range("micro batch", *request.micro_batch);
  if (request.accumulate) check_range("accumulate", *request.accumulate);
  check_range("ranks", request.ranks);
  const int64_t ranks = request.ranks;
  if (!request.global_batch) {
    const int64_t micro = request.micro_batch.value_or(1), accumulate = request.accumulate.value_or(1);
    if (micro * accumulate > kMost || micro * accumulate * ranks > kMost) {
      throw ConfigError(kPlace, "micro batch " + std::to_string(micro) + " x accumulate " + std::to_string(accumulate) +
                                    " x " + name_ranks(ranks) + " is more than 1048576 sequences a step.");
    }
    return {micro * accumulate * ranks, micro, accumulate, ranks};
  }
  const int64_t global = *request.global_batch;
  if (!request.micro_batch && request.accumulate) {
    const int64_t pieces = *request.accumulate * ranks;
    if (*request.accumulate > global || global % pieces != 0) refuse(request, 1);
    return {global, global / pieces, *request.accumulate, ranks};
  }
  const int64_t micro = request.micro_batch.value_or(1);
  if (micro > global || global % micro != 0 || (global / micro) % ranks != 0) refuse(request, micro);
  const int64_t accumulate = global / micro / ranks;
  if (request.accumulate.value_or(accumulate) != accumulate) refuse(request, micro);
  return {global, micro, accumulate, ranks};
}

}  // namespace headrace::data
