// The shared state as torchrun stores it: base64 of a Python pickle of two PyTorch classes, read
// and written by agents of PyTorch 2.3 and newer.
#pragma once

#include "base/error.h"
#include "rendezvous/dynamic/state.h"

#include <string>
#include <string_view>

namespace lockstep::rendezvous::dynamic {

// Stands where no state has been written yet.
inline constexpr std::string_view kNoState = "Y2FuaW1hZGFt";

// Fails with Errc::corrupt for what is no state, and with Errc::invalid_input for the state of an
// agent too old to share a job with (PyTorch 1.13 and its like). What fails must never be
// overwritten.
Result<RendezvousState> decode_state(std::string_view base64);

// All attributes, in torchrun's order, heartbeats as aware UTC. Not canonical: another agent's
// text of an equal state differs. Fails for what a peer could not read (an address that is not
// UTF-8, a time outside the years 1 to 9999, a state beyond 8,000 nodes or so).
Result<std::string> encode_state(const RendezvousState& state);

}  // namespace lockstep::rendezvous::dynamic
