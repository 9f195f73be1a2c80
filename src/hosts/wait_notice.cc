#include "hosts/wait_notice.h"

#include "base/log.h"
#include "hosts/wait_words.h"
#include "io/fd.h"

#include <fcntl.h>
#include <termios.h>

#include <utility>

namespace lockstep::hosts {
namespace {

// ssh switches the terminal's echo off while ssh asks for a passphrase or password. Without a
// terminal (cron, CI), nothing asks.
bool terminal_asks() {
  const io::Fd terminal(open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY));
  termios settings{};
  return terminal && tcgetattr(terminal.get(), &settings) == 0 && (settings.c_lflag & ECHO) == 0;
}

}  // namespace

WaitNotice::WaitNotice(io::Loop& loop, std::function<Waiting()> who)
    : who_(std::move(who)), timer_(loop) {}

void WaitNotice::start() {
  timer_.start(next_notice(waited_), [this] { tell(); });
}

void WaitNotice::tell() {
  // A line now would tear the prompt apart. The time of typing does not count as waiting.
  if (!terminal_asks()) {
    waited_ += next_notice(waited_);
    for (const std::string& line : wait_lines(who_(), waited_))
      log::warning("{}", line);
  }
  start();
}

}  // namespace lockstep::hosts
