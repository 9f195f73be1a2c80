// Ed25519 key pairs for rented machines, in OpenSSH's own formats. A user key is for logging in. A
// host key is chosen before the machine exists.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::cloud {

struct KeyPair {
  std::string private_text;  // "-----BEGIN OPENSSH PRIVATE KEY-----", lines
  std::string public_line;   // "ssh-ed25519 AAAA... COMMENT"
};

// Makes a key pair. comment: one printable line.
Result<KeyPair> new_key_pair(std::string_view comment);

// Formats a key pair. seed and public_key: 32 bytes each. check: any number. The format contains
// check twice, to detect a wrong passphrase. Pure.
KeyPair key_pair_text(std::string_view seed, std::string_view public_key, std::uint32_t check,
                      std::string_view comment);

// Returns the pair at `path`. Makes the pair first if it is missing. `path` has mode 0600, the
// public half is `path`.pub, and missing folders are made with mode 0700.
Result<KeyPair> keep_key_pair(const std::string& path, std::string_view comment);
// Replaces the pair at `path`.
Status write_key_pair(const std::string& path, const KeyPair& pair);
// Removes both files; missing files are not an error.
void remove_key_pair(const std::string& path);

}  // namespace lockstep::cloud
