#include "cli/terminal.h"

#include "base/log.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace lockstep::cli {

TerminalSize terminal_size(int fd) {
  const char* kind = std::getenv("TERM");
  if (isatty(fd) != 1 || (kind != nullptr && std::string_view(kind) == "dumb")) return {};
  // A pseudo-terminal whose size was never set reports 0 rows and columns.
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {24, 80};
  return {size.ws_row, size.ws_col};
}

bool folds(std::string_view when) {
  return when == "always" || (when == "auto" && isatty(STDOUT_FILENO) == 1);
}

WipesForLog::WipesForLog(std::function<void()> wipe) : wipe_(std::move(wipe)) {
  log::set_sink(
      [](void* self, std::string_view lines) {
        static_cast<WipesForLog*>(self)->wipe_();
        std::fwrite(lines.data(), 1, lines.size(), stderr);
      },
      this);
}

WipesForLog::~WipesForLog() {
  log::set_sink(nullptr, nullptr);
}

}  // namespace lockstep::cli
