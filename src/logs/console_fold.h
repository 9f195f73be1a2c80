// Folds equal lines of several workers into one on the console: a LineFolder with a clock and
// prefixes, for one sink of the console.
#pragma once

#include "io/loop.h"
#include "logs/line_folder.h"

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::logs {

// Returns the prefix of a line said by these ranks ("0-3"), in the form of LinePrefix.
using FoldPrefix = std::function<std::string(std::string_view local_ranks, std::string_view ranks)>;

struct FoldSource {
  int local_rank = 0;
  int rank = 0;
};

class ConsoleFold {
 public:
  using Write = std::function<void(std::string_view lines)>;

  ConsoleFold(io::Loop& loop, FoldPrefix prefix, Write write);
  ConsoleFold(const ConsoleFold&) = delete;
  ConsoleFold& operator=(const ConsoleFold&) = delete;

  // Adds a source of lines. A rank attaches twice if both of its streams come here.
  void attach(const FoldSource& source);
  void detach(const FoldSource& source);

  // Takes a whole line with its '\n'. Nothing is written before the next commit().
  void put(const FoldSource& source, std::string_view line);
  // Takes a piece of a progress bar, like LineFolder::draw().
  bool draw(const FoldSource& source, std::string_view piece);
  // Call before output of this rank that is not a whole line: shows the rank's earlier lines first.
  void flush_of(const FoldSource& source);
  // Shows every waiting line now.
  void flush();
  // Writes the lines that are ready.
  void commit();

  std::size_t waiting() const { return folder_.waiting(); }

 private:
  void show(std::span<const int> ranks, std::string_view line, LineFolder::Time since);
  std::string prefix_of(std::span<const int> ranks) const;
  void wait();

  FoldPrefix prefix_;
  Write write_;
  io::Timer timer_;
  LineFolder folder_;   // by local rank
  int first_rank_ = 0;  // global rank of local rank 0
  std::map<int, int> sources_;
  std::string text_;
};

}  // namespace lockstep::logs
