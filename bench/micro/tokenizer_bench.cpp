// tokenizer_bench TOKENIZER TEXT: for every line read from standard input encodes all lines of TEXT once, one after
// the other in one thread, and prints the seconds of processor time it took. The first pass also writes all ids to
// TEXT.ids (int32, -1 after each line), so that what was timed can be compared. Driven by tokenizer_bench.py.
#include <ctime>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/tokenizer/tokenizer.h"

namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Processor time, not wall time: other work on the machine does not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "use: tokenizer_bench TOKENIZER TEXT\n");
    return 2;
  }
  const auto tokenizer = headrace::tokenizer::Tokenizer::load(argv[1]);
  std::ifstream file(argv[2], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto lines = lines_of(text);
  bool is_first = true;
  for (std::string command; std::getline(std::cin, command);) {
    std::vector<std::vector<int32_t>> ids(lines.size());
    const double start = cpu_seconds();
    for (size_t i = 0; i < lines.size(); ++i) tokenizer.encode(lines[i], ids[i]);
    const double taken = cpu_seconds() - start;
    if (is_first) {
      std::ofstream out(std::string(argv[2]) + ".ids", std::ios::binary);
      const int32_t end = -1;
      for (const auto& line : ids) {
        out.write(reinterpret_cast<const char*>(line.data()),
                  static_cast<std::streamsize>(line.size() * sizeof(int32_t)));
        out.write(reinterpret_cast<const char*>(&end), sizeof end);
      }
      is_first = false;
    }
    std::printf("%.9f\n", taken);
    std::fflush(stdout);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
