// The command line of pdsh, which DeepSpeed's launcher starts: pdsh -S -f 1024 -w a,b COMMAND.
// Pure.
#pragma once

#include "base/error.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launchers {

struct PdshWords {
  std::vector<std::string> hosts = {};   // in the order of -w, without those of -x
  std::optional<std::string> user = {};  // -l
  bool largest_code = false;             // -S: exit with the largest code of all hosts
  bool labels = true;                    // -N: no "host: " before lines
  bool fail_fast = false;                // -k: a host that fails ends the others
  std::string command = {};   // for a shell on each host; %h, %n, %u, %% not replaced yet
  bool asks_version = false;  // -V or -h: nothing else counts
};

Result<PdshWords> parse_pdsh(std::span<const std::string> words);

// The command for the host with this number.
std::string pdsh_command(const PdshWords& pdsh, std::size_t host, std::string_view own_user);

// What $PDSH_SSH_ARGS_APPEND says of the way to the hosts; DeepSpeed's --ssh_port is written there.
struct PdshWay {
  std::optional<int> port = {};          // -p
  std::optional<std::string> key = {};   // -i
  std::optional<std::string> jump = {};  // -J
  std::vector<std::string> left = {};    // words that are not understood
};

PdshWay pdsh_way(std::string_view ssh_args);

// In a Slurm allocation: srun's argv, with one task on each of the hosts.
std::vector<std::string> pdsh_over_srun(const PdshWords& pdsh, std::string_view own_user);

}  // namespace lockstep::launchers
