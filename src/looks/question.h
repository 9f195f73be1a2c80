// What a command asks an agent beside the groups of ranks. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::looks {

struct Question {
  std::optional<int> rank = {};  // the threads of this rank
  bool threads = false;          // the threads of all ranks
  // What threads do below Python; without `rank` and `threads` those of all main threads.
  bool native = false;

  bool asks_threads() const { return rank || threads || native; }
  friend bool operator==(const Question&, const Question&) = default;
};

// "rank=3&native", "threads"; "": nothing.
std::string print_question(const Question& question);
// Leaves out unknown words. Older agents know "rank=3" alone.
Question read_question(std::string_view text);

}  // namespace lockstep::looks
