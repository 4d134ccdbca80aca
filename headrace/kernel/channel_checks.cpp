#include "headrace/kernel/channel_checks.h"

#include <string>

#include "headrace/base/errors.h"

namespace headrace::kernel {

void expect_length(const char* verb, const char* what, size_t have, size_t need) {
  if (have == need) return;
  throw InternalError(
      verb, std::string(what) + ": " + std::to_string(have) + " numbers where " + std::to_string(need) + " must be.");
}

void expect_shape(const char* verb, const MatrixShape& shape) {
  if (shape.rows >= 0 && shape.width >= 0) return;
  throw InternalError(
      verb, "no matrix has " + std::to_string(shape.rows) + " rows of " + std::to_string(shape.width) + " elements.");
}

void expect_matrix(const char* verb, size_t elements, const MatrixShape& shape) {
  expect_shape(verb, shape);
  expect_length(verb, "matrix", elements, static_cast<size_t>(shape.num_elements()));
}

void expect_within(const char* verb, Lines lines, int64_t count) {
  if (lines.begin >= 0 && lines.begin <= lines.end && lines.end <= count) return;
  throw InternalError(verb, "lines " + std::to_string(lines.begin) + " to " + std::to_string(lines.end) +
                                " are not within the " + std::to_string(count) + " there are.");
}

void expect_channels(const char* verb, std::span<const int32_t> channels, const MatrixShape& shape) {
  for (const int32_t channel : channels) {
    if (channel >= 0 && channel < shape.num_channels()) continue;
    throw InternalError(
        verb, "channel " + std::to_string(channel) + " is not one of " + std::to_string(shape.num_channels()) + ".");
  }
}

size_t compact_length(const char* verb, const MatrixShape& shape, Lines lines, size_t num_chosen) {
  expect_within(verb, lines, num_lines(shape, num_chosen));
  return static_cast<size_t>(lines.count() * line_width(shape, num_chosen));
}

}  // namespace headrace::kernel
