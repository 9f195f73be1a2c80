// The file of host keys that a cluster's hosts are held to: lines as in ~/.ssh/known_hosts.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::ssh {

// The pins of a cluster lie in the state folder under this and its name.
inline constexpr std::string_view kPinsPrefix = "hosts-";

// What one host is held to.
struct Pins {
  std::vector<std::string> keys;  // "ssh-ed25519 AAAA"; several while one is exchanged for another
  // The key that it was known by before its first contact: it tells a host that was met from the
  // next one at the same address. Kept in a comment.
  std::string origin = {};
};

// "198.51.100.7 ssh-ed25519 AAAA...", "[198.51.100.7]:2222 ssh-ed25519 AAAA...". public_key: with
// or without a comment. Pure.
std::string pin_line(std::string_view address, int port, std::string_view public_key);

// "ssh-ed25519 AAAA", of a line with a comment. Pure.
std::string bare_key(std::string_view public_key);

// Of the address and port in the text of such a file. Pure.
Pins pins_in(std::string_view text, std::string_view address, int port);
// `text` with these in place of what it has for the address and port. Pure.
std::string with_pins(std::string_view text, std::string_view address, int port, const Pins& pins);

// In a file; one that is not there has none.
Result<Pins> read_pins(const std::string& file, std::string_view address, int port);
// All at once; the file is made where it is missing. No keys: the host is taken out.
Status pin_host(const std::string& file, std::string_view address, int port, const Pins& pins);

}  // namespace lockstep::ssh
