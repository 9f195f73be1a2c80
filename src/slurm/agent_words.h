// What `lockstep run` is told on every node of a Slurm job, beside what the user wrote. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

struct AgentWish {
  std::optional<int> nodes;      // that train; nullopt: all that the step has
  std::optional<int> min_nodes;  // fewer may go on when nodes are lost
  int spares = 0;
  int workers = 1;               // on each node, unless the user says another number
  std::string folder;            // of the launch: its token and its ranks
  std::string prefix;            // of lines, where there are several ranks
  std::vector<std::string> run;  // the user's options, then "--" and the command
};
std::vector<std::string> agent_words(const AgentWish& wish);

}  // namespace lockstep::slurm
