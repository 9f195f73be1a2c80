// At the end of a good run agents wait for one another, so that nobody takes a store away that
// others still use. As PyTorch 2.x does it: a counter and a last member, under the round's prefix.
#pragma once

#include "base/error.h"
#include "rendezvous/key_value.h"
#include "rendezvous/round_result.h"

#include <chrono>
#include <functional>

namespace lockstep::rendezvous {

inline constexpr std::chrono::seconds kExitBarrierTimeout{300};

// Once per round: the counter is never reset. `done` comes once, unless the store is destroyed
// before; Errc::timeout: not all came. A failure is no reason to call the run failed.
void enter_exit_barrier(KeyValue& keys, const RoundResult& round, std::chrono::milliseconds timeout,
                        std::function<void(Result<void>)> done);

}  // namespace lockstep::rendezvous
