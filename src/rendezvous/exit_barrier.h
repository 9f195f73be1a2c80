// The exit barrier at the end of a good run: no agent closes a store that another agent still uses.
// Done as in PyTorch 2.x, by a counter and a last member under the round's prefix.
#pragma once

#include "base/error.h"
#include "rendezvous/key_value.h"
#include "rendezvous/round_result.h"

#include <chrono>
#include <functional>

namespace lockstep::rendezvous {

inline constexpr std::chrono::seconds kExitBarrierTimeout{300};

// Enters the barrier. Call once per round: the counter is never reset.
//
// `stays` is asked when the node has been counted. false: the node has left the round meanwhile.
// Then no wait begins, because the wait would block the waits of the next round. `done` runs once,
// unless `stays` returns false or the store is destroyed before. Errc::timeout: some nodes did not
// come. An error must not fail the run.
void enter_exit_barrier(KeyValue& keys, const RoundResult& round, std::chrono::milliseconds timeout,
                        std::function<bool()> stays, std::function<void(Result<void>)> done);

}  // namespace lockstep::rendezvous
