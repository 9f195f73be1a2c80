// Codec of the shared state as torchrun stores it: base64 of a Python pickle of two PyTorch
// classes. Agents of PyTorch 2.3 and newer read and write this format.
#pragma once

#include "base/error.h"
#include "rendezvous/dynamic/state.h"

#include <string>
#include <string_view>

namespace lockstep::rendezvous::dynamic {

// Placeholder that torchrun stores until the first state is written.
inline constexpr std::string_view kNoState = "Y2FuaW1hZGFt";

// Decodes a state. Fails with Errc::corrupt if the text is not a state, and with
// Errc::invalid_input if an agent too old to share a job (PyTorch before 2.3) wrote it. Never
// overwrite a text that fails to decode.
Result<RendezvousState> decode_state(std::string_view base64);

// Encodes all attributes in torchrun's order, heartbeats as aware UTC datetimes. The text is not
// canonical: another agent's text of an equal state may differ. Fails if a peer could not read the
// result: an address that is not UTF-8, a time outside the years 1 to 9999, or more than about
// 8,000 nodes.
Result<std::string> encode_state(const RendezvousState& state);

}  // namespace lockstep::rendezvous::dynamic
