// Proofs that an agent and the hub have the same job token, which neither sends. They are made from
// random numbers of both sides, so that nobody can use one that he has overheard. OpenSSL is used
// only where there is a token.
#pragma once

#include "rendezvous/hub/hub_frames.h"

#include <string_view>

namespace lockstep::rendezvous::hub {

Nonce random_nonce();

enum class Side { agent, hub };
// HMAC-SHA256 under the token over side, both nonces and run id. The side is part of it, or an
// agent could be sent its own proof back as the hub's.
Mac prove(std::string_view token, Side side, const Nonce& agent, const Nonce& hub,
          std::string_view run_id);
// Takes the same time wherever they differ, so that nobody can guess a proof byte by byte.
bool same_mac(const Mac& a, const Mac& b);

}  // namespace lockstep::rendezvous::hub
