#include "setup/tool.h"

#include "base/environment.h"
#include "base/text.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "proc/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace lockstep::setup {
namespace {

constexpr std::size_t kMostTail = 20;
constexpr std::size_t kLongestLine = 16384;

// Cuts output into lines. A carriage return ends a line, too, because progress bars use it.
class Lines {
 public:
  Lines(const std::function<void(std::string_view)>& say, std::vector<std::string>& tail)
      : say_(say), tail_(tail) {}

  void put(std::string_view bytes) {
    for (const char c : bytes) {
      if (c == '\n' || c == '\r') {
        end();
        // Cut very long lines: a tool without newlines must not fill the memory.
      } else if (line_.size() < kLongestLine) {
        line_ += c;
      }
    }
  }

  void end() {
    if (strip(line_).empty()) return line_.clear();
    say_(line_);
    if (tail_.size() == kMostTail) tail_.erase(tail_.begin());
    // Keep the last lines only: the cause of a failure is usually there.
    tail_.push_back(std::exchange(line_, {}));
  }

 private:
  const std::function<void(std::string_view)>& say_;
  std::vector<std::string>& tail_;
  std::string line_;
};

// Reads all bytes that are available. Returns false once the other end is closed.
bool drain(int fd, Lines& lines) {
  char bytes[16384];
  while (true) {
    const ssize_t got = read(fd, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    lines.put({bytes, static_cast<std::size_t>(got)});
  }
}

// Returns when the tool exits, not at the end of its output: a process that the tool left running
// may keep the pipe open for ever.
proc::Exit wait_for(proc::Child& child, const io::Fd& output, Lines& lines) {
  bool open = true;
  while (true) {
    pollfd ready[2] = {{child.pidfd(), POLLIN, 0}, {open ? output.get() : -1, POLLIN, 0}};
    // EINTR only: look again.
    if (poll(ready, 2, -1) < 0) continue;
    if (ready[1].revents != 0) open = drain(output.get(), lines);
    if (ready[0].revents == 0) continue;
    if (const auto exit = child.reap()) {
      if (open) drain(output.get(), lines);
      lines.end();
      return *exit;
    }
  }
}

std::vector<std::string> environment_with(const std::vector<std::string>& given) {
  std::vector<std::string> env = given;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string own(*entry);
    const std::string name = own.substr(0, own.find('=') + 1);
    const auto replaces = [&](const std::string& each) { return each.starts_with(name); };
    if (std::none_of(given.begin(), given.end(), replaces)) env.push_back(own);
  }
  return env;
}

}  // namespace

Result<ToolEnding> run_tool(const ToolCall& call,
                            const std::function<void(std::string_view)>& say) {
  LOCKSTEP_TRY_ASSIGN(io::Pipe pipe, io::make_pipe());
  const io::Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return fail_sys("open /dev/null", errno);
  LOCKSTEP_TRY(io::set_nonblocking(pipe.read.get()));
  proc::SpawnSpec spec;
  spec.executable = call.argv.at(0);
  spec.argv = call.argv;
  spec.env = environment_with(call.env);
  spec.folder = call.folder;
  spec.stdin_fd = null.get();
  spec.stdout_fd = pipe.write.get();
  // One pipe for both streams keeps the lines in their order.
  spec.stderr_fd = pipe.write.get();
  spec.own_session = false;  // Ctrl-C must reach the tool, too
  LOCKSTEP_TRY_ASSIGN(proc::Child child, proc::spawn(spec));
  // Close our copy of the write end, or the pipe never ends.
  pipe.write.reset();
  ToolEnding ending;
  Lines lines(say, ending.tail);
  ending.code = wait_for(child, pipe.read, lines).shell_code();
  return ending;
}

std::string telling_line(const std::vector<std::string>& tail) {
  const auto is_error = [](const std::string& line) {
    const std::string text = to_lower(strip(line));
    return text.starts_with("error") || text.find("error:") != std::string::npos;
  };
  const auto found = std::find_if(tail.rbegin(), tail.rend(), is_error);
  if (found != tail.rend()) return std::string(strip(*found));
  return tail.empty() ? "" : std::string(strip(tail.back()));
}

std::string find_program(const std::string& name, const std::vector<std::string>& places) {
  const auto found = proc::find_executable(name, env_text("PATH", "/usr/local/bin:/usr/bin:/bin"));
  if (found) return *found;
  for (const std::string& place : places) {
    std::string at = place.starts_with('/') ? place : io::home_folder() + "/" + place;
    if (access(at.c_str(), X_OK) == 0) return at;
  }
  return {};
}

}  // namespace lockstep::setup
