// Opens and sizes the pseudo-terminal.
#include "logs/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

namespace lockstep::logs {

Result<Pty> open_pty(int like) {
  Pty pty;
  pty.master = io::Fd(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.master) return fail_sys("open a pseudo-terminal", errno);
  if (unlockpt(pty.master.get()) != 0) return fail_sys("unlock a pseudo-terminal", errno);
  // Open by descriptor: in a container the path may name another terminal, or none.
  pty.slave = io::Fd(ioctl(pty.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.slave) return fail_sys("open a pseudo-terminal's other end", errno);
  termios settings{};
  // Start from the real terminal's settings, so that the worker sees the same settings.
  if (tcgetattr(like, &settings) == 0 || tcgetattr(pty.slave.get(), &settings) == 0) {
    // The real terminal behind it processes output and echo. The pty must not process the bytes a
    // second time.
    settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    settings.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL);
    if (tcsetattr(pty.slave.get(), TCSANOW, &settings) != 0) {
      return fail_sys("set up a pseudo-terminal", errno);
    }
  }
  copy_window_size(like, pty.master.get());
  return pty;
}

void copy_window_size(int from, int to) {
  winsize size{};
  if (ioctl(from, TIOCGWINSZ, &size) == 0) ioctl(to, TIOCSWINSZ, &size);
}

}  // namespace lockstep::logs
