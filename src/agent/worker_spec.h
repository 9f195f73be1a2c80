// Which command each worker of an attempt runs, with which environment: a pure function of the
// configuration, the round and the attempt. The names and spellings are PyTorch's (T: "Environment
// variables" in docs/command-line.md); scripts and torch itself compare with them literally.
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
  std::string agent_tag;                 // value of LOCKSTEP_AGENT; empty: none
  std::vector<std::string> error_files;  // per local rank; empty strings when logs are disabled
};

// inherited: the agent's own environment.
std::vector<WorkerSpec> make_worker_specs(const launch::LaunchConfig& config, const Round& round,
                                          const AttemptFacts& facts, const Environment& inherited);

std::vector<std::string> environment_block(const Environment& env);  // "NAME=value" ...
Environment environment_of(const char* const* environ);

}  // namespace lockstep::agent
