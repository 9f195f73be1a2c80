// The command lines of the user's own ssh. Builds argv; starts nothing.
#pragma once

#include "ssh/known_keys.h"
#include "ssh/target.h"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace lockstep::ssh {

// Returns the key of a target in MasterSettings::trusts.
std::string target_key(const Target& target);

struct MasterSettings {
  std::string socket;  // path of the control socket
  // File of the host keys accepted for this cluster. Empty: only the user's own files count.
  std::string pins = {};
  // The results of find_trusts() (find_trusts.h), by target_key(). A missing host counts as
  // unknown.
  std::map<std::string, Trust> trusts = {};
  // The target's private keys that need a passphrase. find_trusts() fills this in, too.
  std::vector<std::string> locked_keys = {};
  std::chrono::seconds patience{15};  // limit for connecting
  std::chrono::seconds stay{600};     // a master without sessions ends after this time
  bool may_ask = false;               // the user can be asked for a passphrase
};

// Returns the hosts of the target's jump, each as a target, and the target itself at the end.
std::vector<Target> hosts_on_the_way(const Target& target);

// Returns `ssh -G`: prints ssh's settings for this target and connects to nothing.
std::vector<std::string> look_up_command(const Target& target);

// Returns the command of a master that goes to the background after the log-in. Host keys are
// always checked, whatever the user's configuration says. The first key of a host that no file
// knows is accepted and noted. If some file knows the host, any other key is refused, also of
// another type. For a pinned target only the pins count, and an unknown key is refused.
std::vector<std::string> master_command(const Target& target, const MasterSettings& settings);

// Returns the same log-in without a master. A master hides the words of a jump host's ssh; this
// command shows them.
std::vector<std::string> probe_command(const Target& target, const MasterSettings& settings);

// Returns the command of a user's own session over the same master. words: ssh options or a
// command.
std::vector<std::string> login_command(const Target& target, const MasterSettings& settings,
                                       const std::vector<std::string>& words);

}  // namespace lockstep::ssh
