// Proofs of the job token between agent and hub, without sending the token. A proof covers random
// numbers of both sides, so an overheard proof cannot be used again. OpenSSL is used only if there
// is a token.
#pragma once

#include "rendezvous/hub/hub_frames.h"

#include <string_view>

namespace lockstep::rendezvous::hub {

Nonce random_nonce();

enum class Side { agent, hub };
// Returns the HMAC-SHA256 under the token of side, both nonces and run id. The side is included;
// otherwise a false hub could send an agent's own proof back.
Mac prove(std::string_view token, Side side, const Nonce& agent, const Nonce& hub,
          std::string_view run_id);
// Compares in constant time, so that a proof cannot be guessed byte by byte.
bool same_mac(const Mac& a, const Mac& b);

}  // namespace lockstep::rendezvous::hub
