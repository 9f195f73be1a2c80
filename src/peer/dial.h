// Dials a serving host: tries all of its addresses and keeps the first with the key.
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
// Blocks until one address works or all have failed.
Result<Dialed> dial(const std::vector<std::string>& addresses, std::uint16_t port,
                    const std::string& key);

}  // namespace lockstep::peer
