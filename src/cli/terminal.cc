#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace lockstep::cli {

TerminalSize terminal_size(int fd) {
  const char* kind = std::getenv("TERM");
  if (isatty(fd) != 1 || (kind != nullptr && std::string_view(kind) == "dumb")) return {};
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {24, 80};
  return {size.ws_row, size.ws_col};
}

bool folds(std::string_view when) {
  return when == "always" || (when == "auto" && isatty(STDOUT_FILENO) == 1);
}

}  // namespace lockstep::cli
