// What the program's exit code says. The fixed contract of docs/formats.md.
#pragma once

#include <exception>
#include <string>

namespace headrace::cli {

enum ExitCode : int {
  kDone = 0,
  kFailed = 1,        // the run failed: disk, device, a loss that is not finite, our bug
  kWrongUse = 2,      // wrong flags or bad input: config, model folder, data, not enough memory
  kInterrupted = 130  // Ctrl-C or SIGTERM, after saving
};

struct Failure {
  int exit_code;
  std::string message;
};

// Of the exception being handled. Call inside a catch block.
Failure failure_of_current_exception();

}  // namespace headrace::cli
