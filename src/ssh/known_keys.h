// The host keys in known_hosts files. ssh accepts a key from any of its files, even if another file
// has a different key. Here every file can refuse a key. Pure.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::ssh {

// Returns the keys ("ssh-ed25519 AAAA...") that a known_hosts file has for a name. The name is as
// ssh looks it up: "host", or "[host]:port" for a port other than 22. Hashed names and patterns
// count. Lines with a marker (@cert-authority, @revoked) do not.
std::vector<std::string> known_keys(std::string_view text, std::string_view name);

// Returns true if the file marks a key (@cert-authority, @revoked) for that name.
bool has_marked_line(std::string_view text, std::string_view name);

struct KnownKeys {
  std::string file;
  std::vector<std::string> keys;
  bool marked = false;  // result of has_marked_line()
};

// The known_hosts files by which a connection checks the host's key.
struct Trust {
  bool strict = false;  // some file has a key of the host: ssh accepts no other key
  // The files that ssh must read: each marks a key for the host or, if strict, has keys of the host
  // that no other file refuses. If strict, ssh must read no other file. ssh refuses a revoked key
  // only if it reads the file that revokes it.
  std::vector<std::string> files = {};

  bool operator==(const Trust&) const = default;
};

// Combines the files into one decision. Fails if two files have different keys of the same type and
// each refuses a key of the other.
Result<Trust> trust_in(const std::vector<KnownKeys>& files, std::string_view name);

// How ssh looks up a host's key, as `ssh -G` prints it.
struct LookUp {
  std::string name;                          // as known_keys() takes it
  std::vector<std::string> files = {};       // the user's and the machine's known_hosts files
  std::vector<std::string> identities = {};  // private keys, existing or not
};
LookUp parse_look_up(std::string_view ssh_g, const std::string& home);

}  // namespace lockstep::ssh
