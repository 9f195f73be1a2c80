// Ed25519 key pairs for machines that are rented: the one that logs in, and the host key that a
// machine is given before it exists. In OpenSSH's own formats.
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

// comment: printable, in one line.
Result<KeyPair> new_key_pair(std::string_view comment);

// seed and public_key: 32 bytes each; check: any number, which OpenSSH wants twice. Pure.
KeyPair key_pair_text(std::string_view seed, std::string_view public_key, std::uint32_t check,
                      std::string_view comment);

// The pair at `path`: made there where it is missing. `path` is for this user alone (0600), its
// public half is `path`.pub; the folders above it are made (0700).
Result<KeyPair> keep_key_pair(const std::string& path, std::string_view comment);
// Puts another one there.
Status write_key_pair(const std::string& path, const KeyPair& pair);
// What is missing is no error.
void remove_key_pair(const std::string& path);

}  // namespace lockstep::cloud
