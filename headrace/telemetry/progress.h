// The line that says how a run is going: rewritten in place on a terminal, plain lines now and then elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::telemetry {

struct ProgressState {
  int64_t step = 0;  // done so far
  int64_t total_steps = 0;
  double loss = 0;  // nats a trained token
  double learning_rate = 0;
  double trained_tokens_per_s = 0;
  double seconds_left = -1;  // < 0: not known yet
  int64_t memory_bytes = 0;  // resident, of this process
};

// "step 12/400  loss 2.3456  lr 3.00e-05  1,234 tokens/s  ETA 3m20s  1.93 GiB". Where `width` [columns] is too small,
// the least important parts go first, then the rest is cut; 0 is no limit. Pure.
std::string format_progress(const ProgressState& state, int width);

struct ProgressOptions {
  std::optional<bool> is_terminal = std::nullopt;  // empty: ask the system
  std::optional<int> width = std::nullopt;         // [columns]; empty: ask the terminal each time
  double terminal_interval_s = 0.1;
  double plain_interval_s = 10;
};

// Any thread. Failures of the output are ignored: a closed pipe must not end a run.
class ProgressLine {
 public:
  // `out` must outlive this; it is not closed.
  explicit ProgressLine(std::FILE* out, ProgressOptions options = {});
  // Ends the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows the state unless the last one is too recent; the first and the last step are always shown. `now_s` is any
  // clock that does not go back.
  void update(const ProgressState& state, double now_s);
  // A line of its own above the progress line. A newline is added.
  void message(std::string_view text);
  // Leaves the last state standing and goes to a new line.
  void finish();

 private:
  int width() const;
  void draw(const std::string& text);

  std::FILE* out_;
  ProgressOptions options_;
  bool is_terminal_;
  std::mutex mutex_;
  std::optional<ProgressState> shown_;
  double shown_at_s_ = 0;
  bool is_line_open_ = false;
};

}  // namespace headrace::telemetry
