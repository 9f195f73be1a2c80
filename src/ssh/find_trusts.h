// Finds out by which known_hosts files a connection must check its hosts' keys.
#pragma once

#include "base/error.h"
#include "ssh/ssh_command.h"
#include "ssh/target.h"

namespace lockstep::ssh {

// Fills in settings.locked_keys, and settings.trusts for the target and each host of its jump: asks
// ssh (-G) under which name and in which files it would look, and reads these files and the pins of
// all clusters. Waits for ssh, a few milliseconds. Errors: two files have different keys of one
// host.
Status find_trusts(const Target& target, MasterSettings& settings);

}  // namespace lockstep::ssh
