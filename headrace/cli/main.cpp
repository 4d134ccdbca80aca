// The headrace program: one subcommand a job. Exit codes in exit_code.h.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "headrace/cli/command.h"
#include "headrace/cli/exit_code.h"

namespace {

using headrace::cli::Run;

struct Command {
  const char* name;
  const char* help;
  Run (*add)(CLI::App&);
};

constexpr Command kCommands[] = {
    {"train", "Fine-tune a Hugging Face model folder on text or conversations", headrace::cli::add_train},
    {"eval", "Loss and perplexity of a model on files", headrace::cli::add_eval},
    {"generate", "Text from a model", headrace::cli::add_generate},
    {"export", "Write a Hugging Face model folder, for example in another dtype", headrace::cli::add_export},
    {"inspect", "What a run or a checkpoint holds, and whether it is whole", headrace::cli::add_inspect},
    {"tokenize", "Token ids of each line of standard input", headrace::cli::add_tokenize},
    {"bench", "How fast this machine does what a step needs", headrace::cli::add_bench},
};

int run_program(int argc, char** argv) {
  CLI::App app("Headrace trains and fine-tunes transformers whose training state does not fit the accelerator.");
  app.name("headrace");
  app.set_version_flag("--version", HEADRACE_VERSION);
  app.require_subcommand(1);
  bool json = false;
  std::vector<std::pair<CLI::App*, Run>> runs;
  for (const Command& command : kCommands) {
    CLI::App* subcommand = app.add_subcommand(command.name, command.help);
    subcommand->add_flag("--json", json, "print one JSON object as the last line of standard output");
    runs.emplace_back(subcommand, command.add(*subcommand));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? headrace::cli::kDone : headrace::cli::kWrongUse;
  }
  for (const auto& [subcommand, run] : runs) {
    if (subcommand->parsed()) return run(json);
  }
  return headrace::cli::kWrongUse;
}

// Idle OpenMP threads must sleep: on cores that are shared with anything else, spinning ones cost a step its whole
// time. libgomp reads the policy when it is loaded, before main, so the program starts itself once more with it.
void start_with_sleeping_threads(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
  execv("/proc/self/exe", argv);  // returns only where /proc is missing: then the threads spin
}

}  // namespace

int main(int argc, char** argv) {
  start_with_sleeping_threads(argv);
  try {
    return run_program(argc, argv);
  } catch (...) {
    const headrace::cli::Failure failure = headrace::cli::failure_of_current_exception();
    std::fprintf(stderr, "headrace: %s\n", failure.message.c_str());
    return failure.exit_code;
  }
}
