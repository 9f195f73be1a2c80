// A verdict in words for a person. Pure. All texts are printable and bounded.
#pragma once

#include "looks/evidence.h"
#include "looks/fold.h"
#include "looks/verdict.h"

#include <cstddef>
#include <span>
#include <string>

namespace lockstep::looks {

struct HangFacts {
  int attempt = 1;
  int round = 0;              // 0: the job has no rounds
  std::string evidence = {};  // the path of the file with all stacks; "": none
};

// Returns the block of lines that a job prints once. The last line has no newline. Example:
//
//   hang: no rank has run for 31 s (attempt 2, 62 ranks in round 3)
//     61 ranks  all_reduce                train.py:88 in step, torch/autograd/graph.py
//     rank 3    data loader, poll         data.py:41 in collate (loader 3.1, pid 8123)
//     evidence: logs/.../attempt_2/hang-1.txt
//
// For a job with a stopped rank the first line begins with "stopped:".
std::string hang_words(const Verdict& verdict, const Fold& fold, const Evidence& evidence,
                       const HangFacts& facts);

// The same for a job in which the NCCL watchdog of a rank has timed out; -1: not known which rank.
std::string timeout_words(int rank, const Fold& fold, const Evidence& evidence,
                          const HangFacts& facts);

// Names what a rank does: "all_reduce", "data loader". "": the script's own code.
std::string activity_words(const Activity& activity);

// "waiting: 7 ranks wait for rank 0 at prepare.py:112 since 4 min". "": the state is not waiting.
std::string waiting_words(const Verdict& verdict);

// One line for any state: "training", "hung: ...", the waiting line, "quiet for 12 s: rank 0 is
// saving a checkpoint".
std::string verdict_words(const Verdict& verdict);

// Prints a line for each group: ranks, activity, place.
std::string fold_words(const Fold& fold, const Evidence& evidence);

// Where the ranks outside of `spared` were, for a failure report: "the other 7 ranks were in
// all_reduce, train.py:88". One sentence for each group, at most `most`.
std::vector<std::string> group_sentences(const Fold& fold, std::span<const int> spared,
                                         std::size_t most = 8);

}  // namespace lockstep::looks
