// The binary for hosts with another processor than this machine's: a file beside this binary.
// Packages bring it packed by gzip.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::ssh {

struct OtherBinary {
  std::string path;
  bool packed = false;  // by gzip
  std::string head;     // the first unpacked bytes, enough for a build id
};

// Returns the binary for a host's `uname -m`, which may be any text. Looks for `lockstep-MACHINE`
// and `lockstep-MACHINE.gz`: beside this binary, in ../lib/lockstep, and in
// $XDG_DATA_HOME/lockstep. not_found: the machine is not in the closed list of known names, or
// there is no such file. corrupt: the file's head is not that of a program for this machine.
Result<OtherBinary> other_binary(std::string_view machine);

// Returns the whole unpacked binary from a packed file. corrupt: the file is damaged, or unpacks to
// more than any binary has.
Result<std::string> unpacked_binary(const std::string& path);

// Returns the machines, as `uname -m` names them, whose hosts this installation can serve: this
// machine, and those with a file.
std::vector<std::string> served_machines();

// Returns whether the first bytes of a file are those of a program for the machine. Pure.
bool is_program_for(std::string_view head, std::string_view machine);

}  // namespace lockstep::ssh
