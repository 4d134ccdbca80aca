#include "headrace/data/line_reader.h"

#include <cstring>
#include <utility>

namespace headrace::data {
namespace {

constexpr size_t kBlockBytes = 1 << 16;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

LineReader::LineReader(std::unique_ptr<ByteSource> bytes, int64_t max_line_bytes)
    : bytes_(std::move(bytes)), max_line_bytes_(static_cast<size_t>(max_line_bytes)), block_(kBlockBytes) {}

bool LineReader::fill() {
  begin_ = 0;
  end_ = bytes_->read(block_);
  return end_ > 0;
}

std::string_view LineReader::finish_line(std::string_view line) {
  ++number_;
  if (number_ == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::optional<std::string_view> LineReader::next() {
  pending_.clear();
  too_long_ = false;
  bool any = false;
  while (begin_ < end_ || fill()) {
    any = true;
    const char* start = block_.data() + begin_;
    const void* newline = std::memchr(start, '\n', end_ - begin_);
    const size_t length = newline ? static_cast<size_t>(static_cast<const char*>(newline) - start) : end_ - begin_;
    begin_ += length + (newline ? 1 : 0);
    if (pending_.size() + length > max_line_bytes_) too_long_ = true;
    if (newline && pending_.empty() && !too_long_) return finish_line({start, length});
    if (!too_long_) pending_.append(start, length);
    if (newline) return finish_line(too_long_ ? std::string_view() : pending_);
  }
  if (!any) return std::nullopt;
  return finish_line(too_long_ ? std::string_view() : pending_);
}

}  // namespace headrace::data
