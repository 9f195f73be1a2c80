// Facts about the terminal of a descriptor, for bars and pictures that are redrawn in place.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace lockstep::cli {

struct TerminalSize {
  std::size_t rows = 0;
  std::size_t columns = 0;  // 0: nothing can be drawn: not a terminal, or TERM=dumb
};

// Returns the size of the terminal, or 24 rows of 80 columns if the terminal does not tell its
// size.
TerminalSize terminal_size(int fd);

// Returns whether --fold WHEN folds equal lines on this process's standard output.
bool folds(std::string_view when);

// Makes each log message first wipe the drawn progress bar, during the lifetime of this object.
// Only one object may exist at a time, because the log has one sink.
class WipesForLog {
 public:
  explicit WipesForLog(std::function<void()> wipe);
  ~WipesForLog();
  WipesForLog(const WipesForLog&) = delete;
  WipesForLog& operator=(const WipesForLog&) = delete;

 private:
  std::function<void()> wipe_;
};

}  // namespace lockstep::cli
