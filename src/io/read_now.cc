#include "io/read_now.h"

#include <errno.h>
#include <unistd.h>

namespace lockstep::io {

void read_now(const Fd& fd, std::string& text, std::size_t limit) {
  char chunk[4096];
  while (text.size() < limit) {
    const ssize_t got = read(fd.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    // EAGAIN ends the reading as well: the descriptor is non-blocking, and bytes that come later
    // are not wanted.
    if (got <= 0) return;
    text.append(chunk, static_cast<std::size_t>(got));
  }
}

}  // namespace lockstep::io
