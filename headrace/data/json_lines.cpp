#include <algorithm>
#include <string>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/data/line_reader.h"
#include "headrace/data/masking.h"
#include "headrace/data/readers.h"
#include "headrace/data/record.h"

namespace headrace::data {
namespace {

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }

// What is wrong, without the place, which the line's own place replaces.
std::string text_of(const DataError& error) {
  const std::string_view what = error.what();
  const size_t prefix = error.place().size() + 3;  // "[place] "
  return std::string(what.substr(std::min(prefix, what.size())));
}

Sample read_line(std::string_view line, Format& format, const CorpusConfig& config, const Codec& codec) {
  const Json json = parse_record(line);
  if (format == Format::automatic) format = detect_format(json);
  return make_sample(read_record(json, format, config.group_field), codec, config.loss_on, config.append_end_of_text);
}

}  // namespace

void read_json_lines(std::unique_ptr<ByteSource> bytes, Format format, CorpusBuilder& builder) {
  const CorpusConfig& config = builder.config();
  LineReader lines(std::move(bytes), config.max_line_bytes);
  while (const auto line = lines.next()) {
    builder.progress(lines.bytes_consumed());
    if (lines.too_long()) {
      builder.bad_line(lines.number(), "longer than " + std::to_string(config.max_line_bytes) + " bytes.");
      continue;
    }
    if (is_blank(*line)) continue;
    Sample sample;
    try {
      sample = read_line(*line, format, config, builder.codec());
    } catch (const DataError& error) {
      builder.bad_line(lines.number(), text_of(error));
      continue;
    }
    builder.add(std::move(sample), lines.number());
  }
}

}  // namespace headrace::data
