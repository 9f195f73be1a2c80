#include "proc/helper_output.h"

#include "io/fd.h"
#include "proc/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

namespace lockstep::proc {
namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr std::size_t kOutputLimit = 1 << 20;

int milliseconds_until(std::chrono::steady_clock::time_point end) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  return left.count() > 0 ? static_cast<int>(left.count()) : 0;
}

// False: the time ran out first, or the output is too large.
bool read_all(int fd, std::chrono::steady_clock::time_point end, std::string& out) {
  char bytes[4096];
  while (out.size() < kOutputLimit) {
    pollfd ready{fd, POLLIN, 0};
    if (poll(&ready, 1, milliseconds_until(end)) != 1) return false;
    const ssize_t got = read(fd, bytes, sizeof bytes);
    if (got <= 0) return true;
    out.append(bytes, static_cast<std::size_t>(got));
  }
  return false;
}

}  // namespace

std::optional<std::string> helper_output(const std::vector<std::string>& argv) {
  const char* path = std::getenv("PATH");
  const auto executable = find_executable(argv.at(0), path == nullptr ? "/bin:/usr/bin" : path);
  auto pipe = io::make_pipe();
  const io::Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!executable || !pipe || !null) return std::nullopt;
  SpawnSpec spec;
  spec.executable = *executable;
  spec.argv = argv;
  for (char** entry = environ; *entry != nullptr; ++entry)
    spec.env.emplace_back(*entry);
  spec.stdin_fd = null.get();
  spec.stdout_fd = pipe->write.get();
  spec.stderr_fd = null.get();
  auto child = spawn(spec);
  if (!child) return std::nullopt;
  pipe->write.reset();

  const auto end = std::chrono::steady_clock::now() + kPatience;
  std::string out;
  const bool complete = read_all(pipe->read.get(), end, out);
  pollfd ended{child->pidfd(), POLLIN, 0};
  if (!complete || poll(&ended, 1, milliseconds_until(end)) != 1) child->signal_group(SIGKILL);
  if (poll(&ended, 1, 1000) != 1) return std::nullopt;
  const auto exit = child->reap();
  if (!complete || !exit || !exit->ok()) return std::nullopt;
  return out;
}

}  // namespace lockstep::proc
