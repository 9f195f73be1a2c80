// The command lines of the user's own ssh. Argv out, no spawning.
#pragma once

#include "ssh/known_keys.h"
#include "ssh/target.h"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace lockstep::ssh {

// What tells targets apart in MasterSettings::trusts.
std::string target_key(const Target& target);

struct MasterSettings {
  std::string socket;  // its path
  // Host keys that were accepted for this cluster; empty: only what the user's own files know.
  std::string pins = {};
  // By target_key(): what find_trusts() (find_trusts.h) found. A host that is missing counts as
  // unknown.
  std::map<std::string, Trust> trusts = {};
  // Private keys of the target that only a passphrase opens. Filled in with `trusts`.
  std::vector<std::string> locked_keys = {};
  std::chrono::seconds patience{15};  // for the connection
  std::chrono::seconds stay{600};     // without a session the master ends after this
  bool may_ask = false;               // there is somebody to ask for a passphrase
};

// The hosts of the target's jump, as targets of their own, and the target itself at the end.
std::vector<Target> hosts_on_the_way(const Target& target);

// `ssh -G`: prints what ssh would do for this target, and connects to nothing.
std::vector<std::string> look_up_command(const Target& target);

// A master that goes to the background once it has logged in. Host keys are always checked: the
// first one of a host that no file knows is accepted and noted; of a host that some file knows any
// other one is refused, also of another type, whatever the configuration says. Where the target's
// are pinned, an unknown one is refused as well, and nothing but the pins counts.
std::vector<std::string> master_command(const Target& target, const MasterSettings& settings);

// The same log-in without a master. A master keeps the words of a jump host's ssh to itself; this
// one shows them.
std::vector<std::string> probe_command(const Target& target, const MasterSettings& settings);

// A session of a person over the same master. words: ssh's own, options or a command.
std::vector<std::string> login_command(const Target& target, const MasterSettings& settings,
                                       const std::vector<std::string>& words);

}  // namespace lockstep::ssh
