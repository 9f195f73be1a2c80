// Reads the command line of pdsh, which DeepSpeed's launcher starts: pdsh -S -f 1024 -w a,b
// COMMAND. Pure.
#pragma once

#include "base/error.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launchers {

struct PdshWords {
  std::vector<std::string> hosts = {};   // in the order of -w, hosts of -x left out
  std::optional<std::string> user = {};  // -l
  bool largest_code = false;             // -S: exit with the largest code of all hosts
  bool labels = true;                    // -N: no "host: " before lines
  bool fail_fast = false;                // -k: the first failed host ends all hosts
  std::string command = {};   // for a shell on each host, with %h, %n, %u, %% not yet replaced
  bool asks_version = false;  // -V or -h: nothing else counts
};

// Errors: invalid_input.
Result<PdshWords> parse_pdsh(std::span<const std::string> words);

// Returns the command for a host, with placeholders replaced. host: index in `pdsh.hosts`.
std::string pdsh_command(const PdshWords& pdsh, std::size_t host, std::string_view own_user);

// Options in $PDSH_SSH_ARGS_APPEND about the way to the hosts. DeepSpeed writes --ssh_port there.
struct PdshWay {
  std::optional<int> port = {};          // -p
  std::optional<std::string> key = {};   // -i
  std::optional<std::string> jump = {};  // -J
  std::vector<std::string> left = {};    // words not understood
};

PdshWay pdsh_way(std::string_view ssh_args);

// Returns an srun call for a Slurm allocation, with one task on each of the hosts.
std::vector<std::string> pdsh_over_srun(const PdshWords& pdsh, std::string_view own_user);

}  // namespace lockstep::launchers
