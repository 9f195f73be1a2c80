// The file of host keys that a cluster's hosts are held to: lines as in ~/.ssh/known_hosts.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::ssh {

// "198.51.100.7 ssh-ed25519 AAAA...", "[198.51.100.7]:2222 ssh-ed25519 AAAA...". public_key: with
// or without a comment. Pure.
std::string pin_line(std::string_view address, int port, std::string_view public_key);

// `text` with that line in place of what it has for the address and port. Pure.
std::string with_pin(std::string_view text, std::string_view address, int port,
                     std::string_view public_key);

// The same in a file, all at once; made where it is missing. An empty key takes the lines away.
Status pin_host(const std::string& file, std::string_view address, int port,
                std::string_view public_key);

}  // namespace lockstep::ssh
