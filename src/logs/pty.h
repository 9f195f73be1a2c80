// A pseudo-terminal that stands in for the terminal behind the agent's stderr, so that a worker
// sees a terminal there while the agent reads what it writes.
#pragma once

#include "base/error.h"
#include "io/fd.h"

namespace lockstep::logs {

struct Pty {
  io::Fd master;
  io::Fd slave;
};

// The pty has the settings and size of the terminal `like`, but passes bytes unchanged, because the
// terminal itself still processes them.
Result<Pty> open_pty(int like);
void copy_window_size(int from, int to);

}  // namespace lockstep::logs
