// The terminal of a descriptor, for what is drawn again and again.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace lockstep::cli {

struct TerminalSize {
  std::size_t rows = 0;
  std::size_t columns = 0;  // 0: nothing can be drawn: no terminal, or a dumb one (TERM)
};

// A terminal that does not tell its size is taken for one of 24 rows of 80 columns.
TerminalSize terminal_size(int fd);

// Returns whether --fold WHEN folds equal lines on this process's standard output.
bool folds(std::string_view when);

// During the lifetime of this object, each log message first wipes the drawn progress bar.
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
