// One node: everything succeeds one turn of the loop later.
#include "rendezvous/solo.h"

#include <utility>

namespace lockstep::rendezvous {

Solo::Solo(io::Loop& loop, NodeOffer offer, std::string addr, OfferStore offer_store)
    : offer_(std::move(offer)),
      addr_(std::move(addr)),
      offer_store_(std::move(offer_store)),
      turn_(loop) {}

void Solo::open(Done<void> done) {
  turn_.start({}, [done = std::move(done)] { done({}); });
}

void Solo::join(Done<std::optional<Round>> done) {
  turn_.start({}, [this, done = std::move(done)] {
    // Opens or empties the store for every attempt: workers must not read the keys of an earlier
    // attempt.
    auto store = offer_store_(addr_);
    if (!store) return done(tl::make_unexpected(std::move(store).error()));
    Round round;
    round.number = rounds_++;
    round.restarts = restarts_;
    round.world_size = offer_.local_world_size;
    round.role_world_size = offer_.local_world_size;
    round.master_addr = store->addr;
    round.master_port = store->port;
    done(round);
  });
}

void Solo::tell_failure(const std::string& /*line*/, bool final) {
  if (!final) ++restarts_;
}

void Solo::finish(Done<void> done) {
  turn_.start({}, [done = std::move(done)] { done({}); });
}

void Solo::exchange_reports(const NodeReport& own, std::chrono::milliseconds /*timeout*/,
                            std::function<void(std::vector<NodeReport>)> done) {
  turn_.start({}, [own, done = std::move(done)] { done({own}); });
}

void Solo::leave(Departure /*how*/, Done<void> done) {
  turn_.start({}, [done = std::move(done)] { done({}); });
}

}  // namespace lockstep::rendezvous
