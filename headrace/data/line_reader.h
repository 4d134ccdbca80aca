// Lines of a data file with their numbers. A byte order mark and the \r of \r\n are taken off. One owner, blocking.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/data/byte_source.h"

namespace headrace::data {

class LineReader {
 public:
  LineReader(std::unique_ptr<ByteSource> bytes, int64_t max_line_bytes);

  // The next line, valid until the next call; empty at the end of the file. A line longer than max_line_bytes is read
  // past without keeping it and comes as too_long().
  std::optional<std::string_view> next();
  // 1-based number of the line that next() gave last.
  int64_t number() const { return number_; }
  bool too_long() const { return too_long_; }
  int64_t bytes_consumed() const { return bytes_->bytes_consumed(); }

 private:
  bool fill();
  std::string_view finish_line(std::string_view line);

  std::unique_ptr<ByteSource> bytes_;
  const size_t max_line_bytes_;
  std::vector<char> block_;
  size_t begin_ = 0, end_ = 0;
  std::string pending_;  // a line that began in an earlier block
  int64_t number_ = 0;
  bool too_long_ = false;
};

}  // namespace headrace::data
