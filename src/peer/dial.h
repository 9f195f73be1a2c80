// The way to the host that serves: which of its addresses leads to one that has the key is tried.
#pragma once

#include "base/error.h"
#include "peer/secret_channel.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::peer {

struct Dialed {
  SecretChannel channel;
  std::string address;
};
// Blocks until one is found or all have failed.
Result<Dialed> dial(const std::vector<std::string>& addresses, std::uint16_t port,
                    const std::string& key);

}  // namespace lockstep::peer
