// Runs a program and reads its two streams with a deadline.
#include "proc/tool_output.h"

#include "base/text.h"
#include "io/fd.h"
#include "proc/find_in_path.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::proc {
namespace {

using Clock = std::chrono::steady_clock;

// Limit for stderr, which is only shown to the user.
constexpr std::size_t kMostWords = 64UL << 10;
// Time between SIGTERM and SIGKILL.
constexpr std::chrono::seconds kLastWords{1};

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  return left.count() > 0 ? static_cast<int>(left.count()) : 0;
}

enum class Reading { complete, too_late, too_much };

// Reads both streams until their ends, in any order: a full stderr pipe must not block the program.
Reading read_both(int out, int err, Clock::time_point end, std::size_t most, ToolOutput& said) {
  std::array<pollfd, 2> fds = {pollfd{out, POLLIN, 0}, pollfd{err, POLLIN, 0}};
  std::array<char, 16UL << 10> bytes;
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const int ready = poll(fds.data(), fds.size(), milliseconds_until(end));
    if (ready == 0) return Reading::too_late;
    if (ready < 0) continue;
    for (pollfd& each : fds) {
      if (each.fd < 0 || each.revents == 0) continue;
      const ssize_t got = read(each.fd, bytes.data(), bytes.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        each.fd = -1;
        continue;
      }
      std::string& text = each.fd == out ? said.out : said.err;
      // Keep reading and dropping stderr: otherwise the program would block on a full pipe.
      if (each.fd == err && text.size() >= kMostWords) continue;
      text.append(bytes.data(), static_cast<std::size_t>(got));
      if (said.out.size() > most) return Reading::too_much;
    }
  }
  return Reading::complete;
}

bool ends_by(const Child& child, Clock::time_point end) {
  pollfd ended{child.pidfd(), POLLIN, 0};
  while (true) {
    const int ready = poll(&ended, 1, milliseconds_until(end));
    if (ready >= 0) return ready == 1;
  }
}

}  // namespace

std::vector<std::string> own_environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    environment.emplace_back(*entry);
  return environment;
}

Result<ToolOutput> tool_output(const std::vector<std::string>& argv,
                               std::vector<std::string> environment, const ToolLimits& limits) {
  SpawnSpec spec;
  LOCKSTEP_TRY_ASSIGN(spec.executable, find_in_path(argv.at(0)));
  LOCKSTEP_TRY_ASSIGN(io::Pipe out, io::make_pipe());
  LOCKSTEP_TRY_ASSIGN(io::Pipe err, io::make_pipe());
  const io::Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return fail_sys("open /dev/null", errno);
  spec.argv = argv;
  spec.env = std::move(environment);
  spec.stdin_fd = null.get();
  spec.stdout_fd = out.write.get();
  spec.stderr_fd = err.write.get();
  LOCKSTEP_TRY_ASSIGN(Child child, spawn(spec));
  // Close the own copies of the write ends, or the streams would never end.
  out.write.reset();
  err.write.reset();

  const auto end = Clock::now() + limits.patience;
  ToolOutput said;
  Reading reading = read_both(out.read.get(), err.read.get(), end, limits.output, said);
  if (reading == Reading::complete && !ends_by(child, end)) reading = Reading::too_late;
  if (reading == Reading::too_late && limits.keep_late) {
    child.signal_group(SIGTERM);
    const auto last = Clock::now() + kLastWords;
    (void)read_both(out.read.get(), err.read.get(), last, limits.output, said);
    (void)ends_by(child, last);
  }
  // The whole group: a tool may be a script whose children hold the pipes.
  if (reading != Reading::complete) child.signal_group(SIGKILL);
  // A killed process may still hang in the kernel, for example on a dead file system. Wait one
  // second, no more.
  const bool ended = ends_by(child, std::max(end, Clock::now() + std::chrono::seconds(1)));
  const std::string name = printable(argv[0]);
  if (reading == Reading::too_much)
    return fail(Errc::exhausted,
                fmt::format("{}: printed more than {} MiB", name, limits.output >> 20));
  const auto exit = ended ? child.reap() : std::nullopt;
  if (reading == Reading::too_late && limits.keep_late) {
    said.exit = exit.value_or(Exit{.signal = SIGKILL});
    said.late = true;
    return said;
  }
  if (reading == Reading::too_late || !exit)
    return fail(Errc::timeout,
                fmt::format("{}: no answer in {} s", name,
                            std::chrono::ceil<std::chrono::seconds>(limits.patience).count()));
  said.exit = *exit;
  return said;
}

}  // namespace lockstep::proc
