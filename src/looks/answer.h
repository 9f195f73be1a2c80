// The agent's answer to a command: the state of the ranks of one node. Pure.
#pragma once

#include "base/error.h"
#include "looks/evidence.h"
#include "looks/fold.h"
#include "looks/threads.h"
#include "looks/verdict.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::looks {

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
  int world = 0;               // ranks of the job
  std::string state = {};      // a word of kVerdictStateWords
  std::string words = {};      // one line
  std::string straggler = {};  // one line; "": none
  std::string goodput = {};    // where the time of the node went, one line; "": not known yet
  std::string refusal = {};    // why stacks cannot be read; empty: they can
  Fold fold = {};
  // Sentences of the ranks' flight recorders: "rank 3 never entered #1742 ...".
  std::vector<std::string> collectives = {};
  std::vector<GroupCollective> groups = {};  // of groups in `fold` whose recorders have answered
  // How the GPUs of ranks are used, and their faults: "rank 3, GPU 3: 100 %, 71 of 80 GiB, 320 W".
  std::vector<std::string> gpus = {};
  std::vector<RankText> ranks = {};  // the ranks that the command asked for
  // The agent knows these words of looks::Question, and has heard them. An older one does not.
  bool threads = false;
  bool native = false;
  std::string left_out = {};  // "5-7": ranks whose threads were not read; "": none
  bool whole = false;         // words and fold are those of all nodes
};

// Returns what the evidence says of each group. Groups without evidence are left out.
std::vector<GroupCollective> group_collectives(const Fold& fold, const Evidence& evidence);

std::string answer_json(const Answer& answer);
// Reads the answer of another version, or of a host that may be hostile: all texts become
// printable lines. Fails with Errc::corrupt.
Result<Answer> read_answer(std::string_view text);

// "n1: stacks are not readable: ...", a line. "": they are.
std::string refusal_line(const Answer& answer);

// Returns whether an answer of the same node about the same ranks is in the list.
bool is_known(const std::vector<Answer>& answers, const Answer& answer);

// Merges the answers of all nodes into the text that a person reads.
std::string answers_text(const std::vector<Answer>& answers);

}  // namespace lockstep::looks
