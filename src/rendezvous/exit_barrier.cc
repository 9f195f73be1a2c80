// A counter, a key set by the last node, and a wait for that key.
#include "rendezvous/exit_barrier.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::rendezvous {

void enter_exit_barrier(KeyValue& keys, const RoundResult& round, std::chrono::milliseconds timeout,
                        std::function<bool()> stays, std::function<void(Result<void>)> done) {
  // PyTorch's keys and value.
  const std::string base = round.prefix + "torchelastic/agent/terminal_state/";
  const auto world = static_cast<std::int64_t>(round.world);
  const auto until = std::chrono::steady_clock::now() + timeout;
  auto counted = [&keys, base, world, until, stays = std::move(stays),
                  done = std::move(done)](Result<std::int64_t> count) mutable {
    if (!stays()) return;
    if (!count) return done(tl::make_unexpected(std::move(count).error()));
    const std::string last = base + "last_member";
    // The last node to arrive releases all.
    if (*count == world) keys.set(last, "<val_ignored>", nullptr);
    // The wait shares the timeout with the count.
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    keys.wait({last}, left, [done = std::move(done), arrived = *count, world](Result<void> all) {
      if (all) return done({});
      Error error = std::move(all).error();
      if (error.code == Errc::timeout)
        error.message = fmt::format(
            "not all of {} nodes came to the exit barrier in time (this node was number {})", world,
            arrived);
      done(tl::make_unexpected(std::move(error)));
    });
  };
  keys.add(base + "num_members", 1, std::move(counted));
}

}  // namespace lockstep::rendezvous
