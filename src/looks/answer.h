// What the agent of a node answers to a command that asks what its ranks do. Pure.
#pragma once

#include "base/error.h"
#include "looks/evidence.h"
#include "looks/fold.h"
#include "looks/verdict.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::looks {

// A thread of a rank. Frames are lines like "train.py:88 in step", the innermost first.
struct ThreadText {
  std::string name = {};  // "main thread", "thread 8124", "loader, pid 8131"
  bool holds_gil = false;
  bool whole = true;  // false: the stack was cut, or changed while it was read
  std::vector<std::string> frames = {};
};

struct RankText {
  int rank = 0;
  pid_t pid = 0;
  std::string state = {};  // "S", with the kernel's function: "S, futex_do_wait"
  std::string doing = {};  // "collective all_reduce"
  std::vector<ThreadText> threads = {};
};

// What the flight recorders say of a group of ranks that do the same.
struct GroupCollective {
  int rank = 0;            // the lowest of the group
  std::string words = {};  // "all_reduce #1742 of default_pg, 268 MB"
  bool missing = false;    // the rank has never entered the collective
  bool inside = false;     // all ranks of the group wait inside
};

struct Answer {
  std::string node = {};
  std::string command = {};  // "train.py"
  int attempt = 1;
  int world = 0;             // ranks of the job
  std::string state = {};    // a word of kJobStateWords
  std::string words = {};    // one line
  std::string goodput = {};  // where the time of the node went, one line; "": not known yet
  std::string refusal = {};  // why stacks cannot be read; empty: they can
  Fold fold = {};
  // Sentences of the ranks' flight recorders: "rank 3 never entered #1742 ...".
  std::vector<std::string> collectives = {};
  std::vector<GroupCollective> groups = {};  // of groups in `fold` whose recorders have answered
  // How the GPUs of ranks are used, and their faults: "rank 3, GPU 3: 100 %, 71 of 80 GiB, 320 W".
  std::vector<std::string> gpus = {};
  std::vector<RankText> ranks = {};  // only those that the command asked for
  bool whole = false;                // words and fold are those of all nodes
};

// Returns what the evidence says of each group. Groups without evidence are left out.
std::vector<GroupCollective> group_collectives(const Fold& fold, const Evidence& evidence);

std::string answer_json(const Answer& answer);
// Reads the answer of another version, or of a host that may be hostile: all texts become
// printable lines. Fails with Errc::corrupt.
Result<Answer> read_answer(std::string_view text);

// Makes the texts of a rank's threads. children: also those of its descendants.
RankText rank_text(const RankLook& look, const std::vector<stacks::ThreadStack>& threads);

// The same for a person, a line for each frame.
std::string threads_text(const RankText& rank);

// Returns whether an answer of the same node about the same ranks is in the list.
bool is_known(const std::vector<Answer>& answers, const Answer& answer);

// Merges the answers of all nodes into the text that a person reads.
std::string answers_text(const std::vector<Answer>& answers);

}  // namespace lockstep::looks
