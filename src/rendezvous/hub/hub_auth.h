// Who may join: proofs of a shared token, made from both sides' random numbers so that none can be
// used twice. OpenSSL is touched only where there is a token.
#pragma once

#include "rendezvous/hub/hub_frames.h"

#include <string_view>

namespace lockstep::rendezvous::hub {

Nonce random_nonce();

enum class Side { agent, hub };
// HMAC-SHA256 under the token over side, both nonces and run id.
Mac prove(std::string_view token, Side side, const Nonce& agent, const Nonce& hub,
          std::string_view run_id);
// In a time that tells nothing of where they differ.
bool same_mac(const Mac& a, const Mac& b);

}  // namespace lockstep::rendezvous::hub
