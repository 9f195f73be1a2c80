// Equal lines of several workers become one on the console: a LineFolder with a clock and a prefix,
// for one file behind the console.
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

// The prefix of a line that these have said: "0-3", and their global ranks. As LinePrefix has it.
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

  // Who may say a line. A rank whose two streams come here attaches twice.
  void attach(const FoldSource& source);
  void detach(const FoldSource& source);

  // A whole line with its '\n'. It is written by the next commit() at the earliest.
  void put(const FoldSource& source, std::string_view line);
  // A piece of a progress bar, as LineFolder::draw() has it.
  bool draw(const FoldSource& source, std::string_view piece);
  // Something of this rank follows that is no whole line: what it has said before goes first.
  void flush_of(const FoldSource& source);
  void flush();
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
  int first_rank_ = 0;  // the global rank of local rank 0
  std::map<int, int> sources_;
  std::string text_;
};

}  // namespace lockstep::logs
