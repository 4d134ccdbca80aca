// Runs a fuzzer's function once over each file of the folders named on the command line, without libFuzzer.
// Fails when there is nothing to run: a corpus that went missing must not look like a pass.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> paths;
  try {
    for (int i = 1; i < argc; ++i) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
        if (entry.is_regular_file()) paths.push_back(entry.path());
      }
    }
    std::sort(paths.begin(), paths.end());
    for (const std::filesystem::path& path : paths) {
      // Named before it runs, so that the last line of a crash says which input it was.
      std::printf("%s\n", path.c_str());
      std::fflush(stdout);
      const std::string input = headrace::os::read_file(path);
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::printf("%zu inputs\n", paths.size());
  return paths.empty() ? 1 : 0;
}
