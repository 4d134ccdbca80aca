// A second process for a test: forked, runs a function, ends without running destructors or the rest of the test.
#pragma once

#include <csignal>
#include <functional>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

namespace headrace::fault {

class ChildProcess {
 public:
  // The child ends with what `body` returns, or with 99 when it throws.
  explicit ChildProcess(const std::function<int()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    int code = 99;
    try {
      code = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    ::_exit(code);
  }
  ~ChildProcess() {
    if (pid_ > 0) kill();
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Ends it as the system does when memory runs out.
  void kill() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  // Its exit code; -1 when a signal ended it.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

}  // namespace headrace::fault
