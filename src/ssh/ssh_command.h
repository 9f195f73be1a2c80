// The command lines of the user's own ssh. Argv out, no spawning.
#pragma once

#include "ssh/target.h"

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::ssh {

struct MasterSettings {
  std::string socket;  // its path
  // Host keys that were accepted for this cluster; empty: only what the user's own files know.
  std::string pins = {};
  std::chrono::seconds patience{15};  // for the connection
  std::chrono::seconds stay{600};     // without a session the master ends after this
  bool may_ask = false;               // there is somebody to ask for a passphrase
};

// A master that goes to the background once it has logged in. Host keys are always checked: an
// unknown one is accepted and noted, a changed one is refused, whatever the user's files say. Where
// the target's are pinned, an unknown one is refused as well, and nothing but the pins counts.
std::vector<std::string> master_command(const Target& target, const MasterSettings& settings);

// The same log-in without a master. A master keeps the words of a jump host's ssh to itself; this
// one shows them.
std::vector<std::string> probe_command(const Target& target, const MasterSettings& settings);

// A session of a person over the same master. words: ssh's own, options or a command.
std::vector<std::string> login_command(const Target& target, const MasterSettings& settings,
                                       const std::vector<std::string>& words);

}  // namespace lockstep::ssh
