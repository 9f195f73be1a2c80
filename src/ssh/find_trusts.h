// Finds the known_hosts files by which a connection must check its hosts' keys.
#pragma once

#include "base/error.h"
#include "ssh/ssh_command.h"
#include "ssh/target.h"

namespace lockstep::ssh {

// Fills in settings.locked_keys, and settings.trusts for the target and for each host of its jump.
// Asks `ssh -G` under which name and in which files ssh would look, then reads these files and the
// pins of all clusters. Blocks for ssh, a few milliseconds. Fails if two files have different keys
// for one host.
Status find_trusts(const Target& target, MasterSettings& settings);

}  // namespace lockstep::ssh
