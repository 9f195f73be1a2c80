// The host that an SSH connection goes to, written as for ssh itself. Pure.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::ssh {

// Which host keys a connection accepts.
enum class HostKeys {
  first_seen,  // a key in the user's own files, or any key at the first contact
  pinned,      // only the cluster's pin: an ed25519 key that we made before the host existed
};

struct Target {
  std::string host;                      // a name, an address, or an alias of ~/.ssh/config
  std::optional<std::string> user = {};  // unset: ssh's own choice
  std::optional<int> port = {};
  std::string key_path = {};  // -i; empty: ssh's own choice
  std::string jump = {};      // -J; empty: ssh's own choice
  HostKeys host_keys = HostKeys::first_seen;

  bool operator==(const Target&) const = default;
};

// Reads "host", "user@host", "user@host:2222", "[::1]:2222" or "ssh://user@host:2222". Refuses
// white space, and names that ssh could take for options.
Result<Target> parse_target(std::string_view text);

// Returns "user@host", for messages.
std::string target_text(const Target& target);

}  // namespace lockstep::ssh
