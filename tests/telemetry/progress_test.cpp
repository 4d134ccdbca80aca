#include "headrace/telemetry/progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

namespace headrace::telemetry {
namespace {

constexpr ProgressState kState{.step = 12,
                               .total_steps = 400,
                               .loss = 2.34561,
                               .learning_rate = 3e-5,
                               .trained_tokens_per_s = 1234.4,
                               .seconds_left = 200,
                               .memory_bytes = int64_t{2} << 30};

ProgressState at(int64_t step) {
  ProgressState state = kState;
  state.step = step;
  return state;
}

// A FILE* whose contents can be read back.
class Screen {
 public:
  Screen() : file_(std::tmpfile(), &std::fclose) {}
  std::FILE* file() { return file_.get(); }
  std::string text() {
    std::string all(100000, '\0');
    std::rewind(file());
    all.resize(std::fread(all.data(), 1, all.size(), file()));
    return all;
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

TEST(FormatProgress, ShowsEverythingWhereThereIsRoom) {
  EXPECT_EQ(format_progress(kState, 0), "step 12/400  loss 2.3456  lr 3.00e-05  1,234 tokens/s  ETA 3m20s  2.00 GiB");
}

TEST(FormatProgress, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(format_progress({.step = 1, .loss = 3}, 0), "step 1  loss 3.0000  lr 0.00e+00  0 tokens/s");
}

TEST(FormatProgress, FitsEveryWidthAndDropsTheLeastImportantFirst) {
  for (int width = 1; width < 100; ++width) {
    EXPECT_LE(format_progress(kState, width).size(), static_cast<size_t>(width)) << width;
  }
  EXPECT_EQ(format_progress(kState, 73), "step 12/400  loss 2.3456  lr 3.00e-05  1,234 tokens/s  ETA 3m20s");
  EXPECT_EQ(format_progress(kState, 55), "step 12/400  loss 2.3456  1,234 tokens/s  ETA 3m20s");
  EXPECT_EQ(format_progress(kState, 40), "step 12/400  loss 2.3456  ETA 3m20s");
  EXPECT_EQ(format_progress(kState, 30), "step 12/400  loss 2.3456");
  EXPECT_EQ(format_progress(kState, 15), "step 12/400");
  EXPECT_EQ(format_progress(kState, 5), "step ");
}

TEST(FormatProgress, SurvivesNumbersThatAreNone) {
  ProgressState state = kState;
  state.loss = std::nan("");
  state.trained_tokens_per_s = std::numeric_limits<double>::infinity();
  state.seconds_left = std::numeric_limits<double>::infinity();
  EXPECT_NE(format_progress(state, 0).find("loss nan"), std::string::npos);
  state.trained_tokens_per_s = state.seconds_left = std::nan("");
  EXPECT_EQ(format_progress(state, 0), "step 12/400  loss nan  lr 3.00e-05  2.00 GiB");
}

TEST(ProgressLine, RewritesOneLineOnATerminal) {
  Screen screen;
  {
    ProgressLine line(screen.file(), {.is_terminal = true, .width = 16});
    line.update(at(1), 0);
    line.update(at(2), 0.05);  // too soon
    line.update(at(3), 0.2);
  }
  EXPECT_EQ(screen.text(), "\rstep 1/400\x1b[K\rstep 3/400\x1b[K\n");
}

TEST(ProgressLine, MessagesStandAboveTheLine) {
  Screen screen;
  {
    ProgressLine line(screen.file(), {.is_terminal = true, .width = 16});
    line.message("before");
    line.update(at(1), 0);
    line.message("between");
    line.finish();
    line.message("after");
  }
  EXPECT_EQ(screen.text(), "before\n\rstep 1/400\x1b[K\r\x1b[Kbetween\n\rstep 1/400\x1b[K\nafter\n");
}

TEST(ProgressLine, WritesPlainLinesNowAndThenElsewhere) {
  Screen screen;
  {
    ProgressLine line(screen.file(), {.plain_interval_s = 10});  // a file is no terminal
    line.update(at(1), 100);
    line.update(at(2), 105);
    line.message("note");
    line.update(at(3), 111);
    line.update(at(400), 112);  // the last one always
  }
  const std::string rest = "  loss 2.3456  lr 3.00e-05  1,234 tokens/s  ETA 3m20s  2.00 GiB\n";
  EXPECT_EQ(screen.text(), "step 1/400" + rest + "note\nstep 3/400" + rest + "step 400/400" + rest);
}

}  // namespace
}  // namespace headrace::telemetry
