#include "headrace/telemetry/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "headrace/base/units.h"

namespace headrace::telemetry {
namespace {

constexpr std::string_view kGap = "  ";
constexpr int kUnknownWidth = 80;
constexpr double kLongestSeconds = 1e9;  // beyond this a time is nonsense and must not overflow its formatting

std::string printed(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

std::string join(const std::vector<std::string>& parts) {
  std::string line;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!line.empty()) line += kGap;
    line += part;
  }
  return line;
}

}  // namespace

std::string format_progress(const ProgressState& state, int width) {
  enum Part : size_t { kStep, kLoss, kRate, kTokens, kEta, kMemory, kCount };
  std::vector<std::string> parts(kCount);
  parts[kStep] = "step " + std::to_string(state.step);
  if (state.total_steps > 0) parts[kStep] += "/" + std::to_string(state.total_steps);
  parts[kLoss] = printed("loss %.4f", state.loss);
  parts[kRate] = printed("lr %.2e", state.learning_rate);
  const double tokens = std::clamp(state.trained_tokens_per_s, 0.0, kLongestSeconds);  // a NaN stays and is left out
  if (!std::isnan(tokens)) parts[kTokens] = format_count(std::llround(tokens)) + " tokens/s";
  if (state.seconds_left >= 0) parts[kEta] = "ETA " + format_seconds(std::min(state.seconds_left, kLongestSeconds));
  if (state.memory_bytes > 0) parts[kMemory] = format_bytes(state.memory_bytes);
  std::string line = join(parts);
  if (width <= 0) return line;
  const auto limit = static_cast<size_t>(width);
  for (const Part least : {kMemory, kRate, kTokens, kEta, kLoss}) {
    if (line.size() <= limit) return line;
    parts[least].clear();
    line = join(parts);
  }
  return line.substr(0, limit);
}

ProgressLine::ProgressLine(std::FILE* out, ProgressOptions options)
    : out_(out), options_(options), is_terminal_(options.is_terminal.value_or(::isatty(::fileno(out)) == 1)) {}

ProgressLine::~ProgressLine() { finish(); }

void ProgressLine::update(const ProgressState& state, double now_s) {
  const std::lock_guard lock(mutex_);
  const double interval_s = is_terminal_ ? options_.terminal_interval_s : options_.plain_interval_s;
  const bool is_last = state.total_steps > 0 && state.step >= state.total_steps;
  if (shown_ && !is_last && now_s - shown_at_s_ < interval_s) return;
  shown_ = state;
  shown_at_s_ = now_s;
  if (is_terminal_) {
    draw(format_progress(state, width()));
  } else {
    std::fputs((format_progress(state, 0) + "\n").c_str(), out_);
    std::fflush(out_);
  }
}

void ProgressLine::message(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const bool was_open = is_line_open_;
  std::string line = was_open ? "\r\x1b[K" : "";
  line += text;
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fflush(out_);
  if (was_open && shown_) draw(format_progress(*shown_, width()));
}

void ProgressLine::finish() {
  const std::lock_guard lock(mutex_);
  if (!is_line_open_) return;
  std::fputc('\n', out_);
  std::fflush(out_);
  is_line_open_ = false;
}

// One column is left free: many terminals wrap when the last one is written.
int ProgressLine::width() const {
  if (options_.width) return std::max(1, *options_.width - 1);
  struct winsize size {};
  const bool is_known = ::ioctl(::fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return (is_known ? size.ws_col : kUnknownWidth) - 1;
}

void ProgressLine::draw(const std::string& text) {
  std::fputs(("\r" + text + "\x1b[K").c_str(), out_);
  std::fflush(out_);
  is_line_open_ = true;
}

}  // namespace headrace::telemetry
