// One command on one host or on several at once: its arguments, its output and its input, signals,
// and one exit code.
#pragma once

#include "base/error.h"
#include "ssh/target.h"

#include <string>
#include <vector>

namespace lockstep::cluster {

struct HostPlace {
  std::string name;  // for people: "gpus-0", or "ubuntu@10.0.0.5"
  ssh::Target target;
  std::string pins = {};  // the file of its cluster's host keys
};

struct CommandRequest {
  std::vector<HostPlace> hosts;
  std::vector<std::string> argv;
  std::vector<std::string> env = {};  // "NAME=value"
  std::string folder = {};            // relative to the home there; empty: the home
  bool input = true;                  // passes stdin on, to a single host
};

// How it ended on one host.
struct HostEnding {
  int code = 0;            // as a shell has it: 128 + signal; 255: the host was not reached
  std::string error = {};  // why it was not reached or not started; empty: it ran
};

// The code of all: the first that is not 0, in the order of the hosts.
int code_of(const std::vector<HostEnding>& endings);

// Runs until all have ended. Prints what they say; what went wrong with a host goes to the log.
Result<std::vector<HostEnding>> run_command(const CommandRequest& request);

}  // namespace lockstep::cluster
