// Rounds after a change of the coordinator or a lost connection. A round goes on if each of its
// nodes comes over or had finished.
#include "rendezvous/hub/coordinator.h"

#include <utility>

namespace lockstep::rendezvous::hub {

// Handles a join of a node on a new connection whose workers still run or have ended well.
void Coordinator::on_resume(Member& member, Join join, Time now) {
  const std::int64_t round = join.last_round;
  if (over()) {
    // The node's workers ended well before the connection broke: it only missed the answer.
    if (*outcome_ == Outcome::succeeded && join.holds == Join::Holds::finished)
      return outbox_.send(member.peer, Finished{round});
    return outbox_.send(member.peer, Interrupted{round, true, why_over_});
  }
  // The node is known already.
  if (member.stage() != Stage::idle && !member.returning) return;
  if (!fits(member, join)) return remove(member.peer, "its settings do not fit", now);
  member.offer = std::move(join);
  adopt(member.offer, now);
  if (!take_back(member))
    outbox_.send(member.peer, Interrupted{round, false,
                                          "the round is over: the rendezvous went on without "
                                          "this node"});
  consider(now);
}

// Adopts the round named by the first node that comes over.
void Coordinator::adopt(const Join& offer, Time now) {
  if (current_ || next_round_ != settings_.first_round || !inheritance_.has_round_of(offer)) return;
  current_ = inheritance_.adopt(offer, now);
  seats_.assign_vacant(current_->size());
  // A node that has joined again has stopped its workers, which ends the round.
  for (Member* member : roster_.in(Stage::joined)) {
    if (!of_adopted_round(member->offer)) continue;
    take_seat(*member, member->offer);
    current_->interrupt();
  }
}

bool Coordinator::of_adopted_round(const Join& join) const {
  return current_ && current_->adopted() && join.last_round == current_->number();
}

// Gives the member the seat that its join claims, if the seat is free or the member's own. Returns
// whether the member has a seat.
bool Coordinator::take_seat(Member& member, const Join& join) {
  if (member.rank() >= 0) return true;
  if (join.last_round != current_->number() || !seats_.take(join.last_rank, member.agent))
    return false;
  roster_.set_rank(member, join.last_rank);
  return true;
}

// Puts the member back into its round. Returns false if the round is over or goes on without the
// member.
bool Coordinator::take_back(Member& member) {
  const Join& offer = member.offer;
  if (!current_ || !take_seat(member, offer)) return false;
  // The round is over, but the node has a seat: wait for its join.
  if (!running()) {
    member.returning = true;
    roster_.set_stage(member, Stage::placed);
    return false;
  }
  const bool finished = offer.holds == Join::Holds::finished;
  const bool was_gone = current_->came_back(member.rank());
  // This hub counts the node's part as done or lost, and the node says that its workers run. The
  // round cannot go on with both.
  if (!finished && (was_gone || !inheritance_.adopting())) {
    missing_from_round(member.called() + " does not know what it has finished");
    return false;
  }
  current_->admit(offer);
  roster_.set_stage(member, finished ? Stage::finished : Stage::placed);
  check_all_finished();
  return true;
}

// Returns the ranks of an adopted round whose nodes have neither come over nor finished.
std::vector<int> Coordinator::not_come_over() const {
  return current_->unfinished(seats_.vacant());
}

// Returns how long an adopted round waits for its nodes; nullopt: not at all.
std::optional<Time> Coordinator::adoption_ends() const {
  if (over() || !current_ || !inheritance_.adopting()) return {};
  return inheritance_.ends(not_come_over(), !running() || roster_.viable() >= settings_.min_nodes);
}

// Returns whether all nodes that can come over have done so. The rest are lost like any other node.
bool Coordinator::adoption_settled(Time now) {
  const auto ends = adoption_ends();
  if (!ends) return true;
  if (now < *ends) return false;
  inheritance_.settle();
  const auto missing = not_come_over();
  if (running() && !missing.empty())
    missing_from_round(inheritance_.why_missing(missing, current_->size()));
  return !over();
}

}  // namespace lockstep::rendezvous::hub
