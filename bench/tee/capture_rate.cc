// Measures the logs room alone: N forked writers tee'd to files and to this process's stdout. It
// measures the same path as `lockstep run -t 3`, without an agent.
//   capture_rate WRITER BYTES_EACH WORKERS DIRECTORY
#include "logs/capture.h"
#include "logs/console.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::logs {
namespace {

int measure(const char* writer, const char* bytes, int workers, const std::string& dir) {
  io::Loop loop;
  Console console(loop);
  std::vector<std::unique_ptr<Capture>> captures;
  for (int i = 0; i < workers; ++i) {
    CapturePlan plan;
    plan.prefix = "[default" + std::to_string(i) + "]:";
    plan.out.route = Route::tee;
    plan.out.path = dir + "/" + std::to_string(i) + ".log";
    auto capture = Capture::open(loop, console, std::move(plan));
    if (!capture) {
      std::fprintf(stderr, "%s\n", capture.error().message.c_str());
      return 1;
    }
    if (fork() == 0) {
      dup2((*capture)->child_stdout_fd(), STDOUT_FILENO);
      execl(writer, writer, bytes, nullptr);
      _exit(127);
    }
    (*capture)->close_child_ends();
    captures.push_back(std::move(*capture));
  }
  loop.run();  // until every pipe is at its end and all is out
  while (wait(nullptr) > 0) {
  }
  return console.drain(io::Clock::now() + std::chrono::seconds(10)) ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::logs

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  signal(SIGPIPE, SIG_IGN);
  return lockstep::logs::measure(argv[1], argv[2], std::atoi(argv[3]), argv[4]);
}
