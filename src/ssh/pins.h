// The file of host keys pinned for a cluster's hosts. Its lines have the format of
// ~/.ssh/known_hosts.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::ssh {

// A cluster's pins are in the state folder, in a file with this prefix and the cluster's name.
inline constexpr std::string_view kPinsPrefix = "hosts-";

// The accepted keys of one host.
struct Pins {
  std::vector<std::string> keys;  // "ssh-ed25519 AAAA"; several while a key is being replaced
  // The key made for the host before its first contact. It tells a known host from the next machine
  // at the same address. Kept in a comment line.
  std::string origin = {};
};

// Returns a line: "198.51.100.7 ssh-ed25519 AAAA...", or "[198.51.100.7]:2222 ssh-ed25519 AAAA...".
// public_key: with or without a comment. Pure.
std::string pin_line(std::string_view address, int port, std::string_view public_key);

// Returns "ssh-ed25519 AAAA" of a key with a comment. Pure.
std::string bare_key(std::string_view public_key);

// Returns the pins of an address and port in the text of a pin file. Pure.
Pins pins_in(std::string_view text, std::string_view address, int port);
// Returns `text` with the pins of an address and port replaced. Pure.
std::string with_pins(std::string_view text, std::string_view address, int port, const Pins& pins);

// Reads the pins from a file. A missing file has none.
Result<Pins> read_pins(const std::string& file, std::string_view address, int port);
// Replaces a host's pins in the file in one step, making the file if needed. Pins without keys
// remove the host.
Status pin_host(const std::string& file, std::string_view address, int port, const Pins& pins);

}  // namespace lockstep::ssh
