// Which host an SSH connection goes to, in the words that people use for ssh itself. Pure.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::ssh {

// Whose host keys are good.
enum class HostKeys {
  first_seen,  // the user's own files know it, or it is noted at the first contact
  pinned,      // it stands in the cluster's pins: ed25519, made by us before the host was there
};

struct Target {
  std::string host;                      // a name, an address, or an alias of ~/.ssh/config
  std::optional<std::string> user = {};  // not given: ssh's own choice
  std::optional<int> port = {};
  std::string key_path = {};  // -i; empty: ssh's own choice
  std::string jump = {};      // -J; empty: ssh's own choice
  HostKeys host_keys = HostKeys::first_seen;

  bool operator==(const Target&) const = default;
};

// "host", "user@host", "user@host:2222", "[::1]:2222", "ssh://user@host:2222". Names that ssh could
// take for options, and white space, are refused.
Result<Target> parse_target(std::string_view text);

// "user@host", for messages.
std::string target_text(const Target& target);

}  // namespace lockstep::ssh
