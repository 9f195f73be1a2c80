// Builds the command line of `lockstep run` for the nodes of a Slurm job: Lockstep's own options
// first, the user's behind them. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

struct AgentWish {
  std::optional<int> nodes;      // nodes that train; nullopt: all nodes of the step
  std::optional<int> min_nodes;  // the job goes on with this many after node losses
  int spares = 0;
  int workers = 1;               // ranks per node unless the user's options give a number
  std::string folder;            // of the launch; holds its token and the ranks' logs
  std::string prefix;            // template of the prefix of output lines, used with several ranks
  std::vector<std::string> run;  // the user's options, then "--" and the command
};
// Returns the words behind `lockstep run`. All nodes of the step get the same words.
std::vector<std::string> agent_words(const AgentWish& wish);

}  // namespace lockstep::slurm
