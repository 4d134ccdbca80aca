// The commands of the program: each adds its flags and gives back what runs it. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace headrace::cli {

// Runs a parsed command and returns its exit code; throws what failed. `json`: print one JSON object as the last line
// of standard output.
using Run = std::function<int(bool json)>;

Run add_train(CLI::App& app);
Run add_eval(CLI::App& app);
Run add_generate(CLI::App& app);
Run add_export(CLI::App& app);
Run add_inspect(CLI::App& app);
Run add_tokenize(CLI::App& app);
Run add_bench(CLI::App& app);

}  // namespace headrace::cli
