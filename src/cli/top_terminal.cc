#include "cli/top_terminal.h"

#include "cli/terminal.h"
#include "top/text_width.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

namespace lockstep::cli {
namespace {

using top::Style;

// The other screen, no cursor, and no wrapping: a character that is wider than this program knows
// then costs the end of its line only.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr char kCtrlZ = '\x1a';
constexpr int kLastWaitMs = 500;

// Opens a terminal a second time. The first description is shared with the user's shell, which
// must not become non-blocking.
io::Fd open_again(int fd, int flags) {
  return io::Fd(
      open(fmt::format("/proc/self/fd/{}", fd).c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

std::string_view sequence_of(Style style, bool colours) {
  switch (style) {
    case Style::title:
      return "\x1b[1m";
    case Style::head:
      return "\x1b[4m";
    case Style::chosen:
      return "\x1b[7m";
    case Style::alarm:
      return colours ? "\x1b[31m" : "\x1b[1m";
    case Style::attention:
      return colours ? "\x1b[33m" : "";
    case Style::faint:
      return "\x1b[2m";
    case Style::plain:
      break;
  }
  return "";
}

}  // namespace

bool wants_colours(int fd) {
  const char* none = std::getenv("NO_COLOR");
  const bool refused = none != nullptr && *none != '\0';
  return !refused && terminal_size(fd).columns > 0;
}

std::string coloured(const top::ScreenLine& line, bool colours) {
  const std::string_view sequence = colours ? sequence_of(line.style, true) : "";
  return sequence.empty() ? line.text : fmt::format("{}{}\x1b[0m", sequence, line.text);
}

Result<std::unique_ptr<TopTerminal>> TopTerminal::open(io::Loop& loop, Listener& listener) {
  io::Fd out = open_again(STDOUT_FILENO, O_WRONLY);
  if (!out) return fail_sys("open the terminal", errno);
  io::Fd in;
  if (isatty(STDIN_FILENO) == 1) in = open_again(STDIN_FILENO, O_RDONLY);
  return std::unique_ptr<TopTerminal>(
      new TopTerminal(loop, listener, std::move(out), std::move(in)));
}

TopTerminal::TopTerminal(io::Loop& loop, Listener& listener, io::Fd out, io::Fd in)
    : listener_(listener),
      out_(std::move(out)),
      in_(std::move(in)),
      colours_(wants_colours(STDOUT_FILENO)),
      out_watch_(std::make_unique<io::Watch>(loop, out_.get())) {
  out_watch_->start(0, [this](int) { flush(); });
  if (in_) {
    in_watch_ = std::make_unique<io::Watch>(loop, in_.get());
    in_watch_->start(io::kReadable, [this](int) { read_keys(); });
  }
  enter();
}

TopTerminal::~TopTerminal() {
  leave();
}

top::ScreenSize TopTerminal::size() {
  const TerminalSize size = terminal_size(STDOUT_FILENO);
  return {size.rows, size.columns};
}

void TopTerminal::enter() {
  termios now{};
  if (in_ && tcgetattr(in_.get(), &now) == 0) {
    before_ = now;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN);
    now.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL | INLCR);
    // Ctrl-Z comes as a byte, so that the screen is left before the process stops.
    now.c_cc[VSUSP] = _POSIX_VDISABLE;
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    tcsetattr(in_.get(), TCSANOW, &now);
  }
  shown_.clear();
  pending_ = kEnter;
  flush();
}

void TopTerminal::leave() {
  // The rest of a half-sent screen must go first: it may end inside of a sequence.
  pending_ += kLeave;
  while (!pending_.empty()) {
    const ssize_t put = write(out_.get(), pending_.data(), pending_.size());
    if (put > 0) pending_.erase(0, static_cast<std::size_t>(put));
    if (put > 0 || (put < 0 && errno == EINTR)) continue;
    pollfd room{.fd = out_.get(), .events = POLLOUT, .revents = 0};
    if (errno != EAGAIN || poll(&room, 1, kLastWaitMs) <= 0) break;
  }
  pending_.clear();
  if (before_) tcsetattr(in_.get(), TCSANOW, &*before_);
  before_.reset();
}

void TopTerminal::suspend() {
  leave();
  raise(SIGSTOP);
  enter();
  listener_.on_return();
}

void TopTerminal::read_keys() {
  char bytes[256];
  const ssize_t got = read(in_.get(), bytes, sizeof bytes);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    in_watch_->stop();
    return listener_.on_terminal_gone();
  }
  const std::string_view all(bytes, static_cast<std::size_t>(got));
  if (all.find(kCtrlZ) != std::string_view::npos) return suspend();
  for (const top::Key& key : keys_.feed(all))
    listener_.on_key(key);
}

std::string TopTerminal::painted(const top::ScreenLine& line, std::size_t columns) const {
  const std::string_view sequence = sequence_of(line.style, colours_);
  if (sequence.empty()) return line.text;
  const bool whole = line.style == Style::chosen || line.style == Style::head;
  return fmt::format("{}{}\x1b[0m", sequence, whole ? top::fitted(line.text, columns) : line.text);
}

void TopTerminal::show(std::vector<top::ScreenLine> lines) {
  next_ = std::move(lines);
  has_next_ = true;
  if (pending_.empty()) flush();
}

// Sends the screen that waits, once the one before is out.
void TopTerminal::flush() {
  while (true) {
    if (pending_.empty() && has_next_) {
      has_next_ = false;
      const std::size_t columns = size().columns;
      if (shown_.size() != next_.size()) {
        pending_ += "\x1b[2J";
        shown_.assign(next_.size(), "");
      }
      for (std::size_t row = 0; row < next_.size(); ++row) {
        std::string line = painted(next_[row], columns);
        if (line == shown_[row]) continue;
        pending_ += fmt::format("\x1b[{};1H\x1b[K{}", row + 1, line);
        shown_[row] = std::move(line);
      }
    }
    if (pending_.empty()) return out_watch_->want(0);
    const ssize_t put = write(out_.get(), pending_.data(), pending_.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno != EAGAIN) {
      pending_.clear();
      has_next_ = false;
      out_watch_->want(0);
      return listener_.on_terminal_gone();
    }
    if (put < 0) return out_watch_->want(io::kWritable);
    pending_.erase(0, static_cast<std::size_t>(put));
  }
}

}  // namespace lockstep::cli
