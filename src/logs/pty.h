// A pseudo-terminal in place of the terminal behind the agent's stderr: the worker sees a terminal,
// while the agent reads the output.
#pragma once

#include "base/error.h"
#include "io/fd.h"

namespace lockstep::logs {

struct Pty {
  io::Fd master;
  io::Fd slave;
};

// Opens a pty with the settings and size of the terminal `like`. The pty passes bytes unchanged,
// because the terminal itself still processes them.
Result<Pty> open_pty(int like);
void copy_window_size(int from, int to);

}  // namespace lockstep::logs
