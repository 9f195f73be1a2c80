#include "rendezvous/hub/next_round.h"

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::hub {

void NextRound::follow(std::int64_t round) {
  number_ = std::max(number_, round + 1);
}

bool NextRound::last_call(Time now, Ms patience) {
  const Time until = now + patience;
  if (!last_call_until_ || until < *last_call_until_) last_call_until_ = until;
  return now >= *last_call_until_;
}

const NextRound::Offer& NextRound::offer(std::vector<PeerId> ranks, Time now) {
  stop_last_call();
  opened_ = false;
  until_ = now + store_timeout_;
  return offer_.emplace(Offer{number_++, std::move(ranks)});
}

int NextRound::Offer::rank_of(PeerId peer) const {
  const auto at = std::find(ranks.begin(), ranks.end(), peer);
  return at == ranks.end() ? -1 : static_cast<int>(at - ranks.begin());
}

bool NextRound::has(PeerId peer) const {
  return offer_ && offer_->rank_of(peer) >= 0;
}

bool NextRound::move(PeerId from, PeerId to) {
  if (!has(from)) return false;
  std::replace(offer_->ranks.begin(), offer_->ranks.end(), from, to);
  return true;
}

bool NextRound::awaits(PeerId from, const StoreOffer& store) const {
  return awaits_store() && offer_->number == store.round && offer_->first() == from;
}

void NextRound::open(const StoreOffer& store) {
  offer_->store = store;
  opened_ = true;
}

std::optional<NextRound::Offer> NextRound::take(std::int64_t round) {
  if (!offer_ || offer_->number != round || !opened_) return {};
  return std::exchange(offer_, {});
}

}  // namespace lockstep::rendezvous::hub
