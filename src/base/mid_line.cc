// One flag for the terminal's last line.
#include "base/mid_line.h"

#include <unistd.h>

#include <atomic>

namespace lockstep {
namespace {
std::atomic<bool> g_mid_line = false;
}

void set_mid_line(bool mid_line) {
  g_mid_line = mid_line;
}

void end_line() {
  // exchange(): only one of several threads may end the line.
  if (g_mid_line.exchange(false)) (void)!::write(STDERR_FILENO, "\n", 1);
}

}  // namespace lockstep
