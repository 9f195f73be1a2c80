// The command and the environment of each worker of an attempt: a pure function of the
// configuration, the round and the attempt. Names and spellings are PyTorch's ("Environment
// variables" in docs/command-line.md). Scripts and torch itself compare them literally.
#pragma once

#include "launch/launch_config.h"
#include "rendezvous/round.h"

#include <map>
#include <string>
#include <vector>

namespace lockstep::agent {

using rendezvous::Round;
using Environment = std::map<std::string, std::string>;

struct WorkerSpec {
  int local_rank = 0;
  int rank = 0;
  std::vector<std::string> argv;
  Environment env;
};

struct AttemptFacts {
  std::string agent_tag;                 // value of LOCKSTEP_AGENT; empty: do not set
  std::vector<std::string> error_files;  // by local rank; empty strings if logs are disabled
  std::string recorder_folder;           // empty: workers keep their flight recorders
  std::string aid_folder;                // empty: no --aid
};

// Returns the workers of this node by local rank. inherited: the agent's own environment.
std::vector<WorkerSpec> make_worker_specs(const launch::LaunchConfig& config, const Round& round,
                                          const AttemptFacts& facts, const Environment& inherited);

// "NAME=value" entries for execve()
std::vector<std::string> environment_block(const Environment& env);
// Reads a block such as environ. The first of several entries of one name wins.
Environment environment_of(const char* const* environ);

}  // namespace lockstep::agent
