// Rounds after a change of the coordinator or a lost connection. A round goes on if each of its
// nodes comes over or had finished.
#include "rendezvous/hub/coordinator.h"

#include <fmt/core.h>

#include <algorithm>
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

// Adopts the round named by the first node that comes over. The size of the round is only that
// node's claim. So accept only the last round of the previous coordinator, with at most max_nodes
// nodes.
void Coordinator::adopt(const Join& offer, Time now) {
  if (current_ || !settings_.takeover || next_round_ != settings_.first_round ||
      offer.last_round + 1 != settings_.first_round || offer.last_nodes < 1 ||
      static_cast<std::size_t>(offer.last_nodes) > settings_.max_nodes)
    return;
  current_ = Current();
  current_->number = offer.last_round;
  current_->size = static_cast<std::size_t>(offer.last_nodes);
  current_->lowest_max_restarts = INT32_MAX;
  current_->adopted = true;
  current_->adopting_since = now;
  for (const int rank : settings_.last_finished) {
    if (rank >= 0 && rank < offer.last_nodes) current_->finished_and_gone.push_back(rank);
  }
  seats_.assign(current_->size, Nonce{});
  // If the record has more restarts than this node knows of, a failed worker had already ended the
  // round. A node that has joined again has stopped its workers, which ends the round, too.
  current_->interrupted = settings_.restarts > offer.restarts;
  current_->paid = current_->interrupted;
  for (Member* member : roster_.in(Stage::joined)) {
    if (!of_adopted_round(member->offer)) continue;
    take_seat(*member, member->offer);
    current_->interrupted = true;
  }
}

bool Coordinator::of_adopted_round(const Join& join) const {
  return current_ && current_->adopted && join.last_round == current_->number;
}

// Gives the member the seat that its join claims, if the seat is free or the member's own. Returns
// whether the member has a seat.
bool Coordinator::take_seat(Member& member, const Join& join) {
  if (member.rank() >= 0) return true;
  if (join.last_round != current_->number || join.last_rank < 0) return false;
  const auto rank = static_cast<std::size_t>(join.last_rank);
  if (rank >= seats_.size()) return false;
  const bool free = current_->adopted && seats_[rank] == Nonce{};
  if (!free && seats_[rank] != member.agent) return false;
  seats_[rank] = member.agent;
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
  auto& gone = current_->finished_and_gone;
  const bool was_gone = std::erase(gone, member.rank()) > 0;
  // This hub counts the node's part as done or lost, and the node says that its workers run. The
  // round cannot go on with both.
  if (!finished && (was_gone || !current_->adopting_since)) {
    missing_from_round(member.called() + " does not know what it has finished");
    return false;
  }
  current_->lowest_max_restarts = std::min(current_->lowest_max_restarts, offer.max_restarts);
  current_->replacement = current_->replacement && offer.replacement;
  roster_.set_stage(member, finished ? Stage::finished : Stage::placed);
  check_all_finished();
  return true;
}

// Returns the ranks of an adopted round whose nodes have neither come over nor finished.
std::vector<int> Coordinator::not_come_over() const {
  std::vector<int> missing;
  const auto& gone = current_->finished_and_gone;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    const int rank = static_cast<int>(i);
    if (seats_[i] == Nonce{} && std::find(gone.begin(), gone.end(), rank) == gone.end())
      missing.push_back(rank);
  }
  return missing;
}

// Returns how long an adopted round waits for its nodes. The lost leader is not waited for. The
// other nodes get more time if the job cannot do without them.
std::optional<Time> Coordinator::adoption_ends() const {
  if (over() || !current_ || !current_->adopting_since) return {};
  const auto missing = not_come_over();
  const bool only_lead = missing.size() == 1 && missing.front() == settings_.last_lead;
  if (missing.empty() || only_lead) return current_->adopting_since;
  const bool enough = !running() || roster_.viable() >= settings_.min_nodes;
  return *current_->adopting_since + (enough ? settings_.takeover_grace : settings_.return_grace);
}

std::string Coordinator::why_missing(const std::vector<int>& ranks) const {
  std::string lead = settings_.last_lead_called.empty()
                         ? "the node that led the rendezvous is gone"
                         : settings_.last_lead_called + ", which led the rendezvous, is gone";
  if (ranks.size() == 1 && ranks.front() == settings_.last_lead) return lead;
  return fmt::format("{} of {} nodes have not come over since {}", ranks.size(), current_->size,
                     lead);
}

// Returns whether all nodes that can come over have done so. The rest are lost like any other node.
bool Coordinator::adoption_settled(Time now) {
  const auto ends = adoption_ends();
  if (!ends) return true;
  if (now < *ends) return false;
  current_->adopting_since.reset();
  const auto missing = not_come_over();
  if (running() && !missing.empty()) missing_from_round(why_missing(missing));
  return !over();
}

// Returns whether all nodes of the last round but one are here. One loss is expected: the leader's,
// which caused the takeover.
bool Coordinator::survivors_are_here() const {
  std::int64_t last = -1;
  std::size_t size = 0;
  std::size_t here = 0;
  for (const Member* member : roster_.in(Stage::joined)) {
    const Join& offer = member->offer;
    if (offer.last_round < 0 || offer.last_round < last) continue;
    // A later round has been claimed; nodes of earlier rounds do not count.
    if (offer.last_round > last) here = 0;
    last = offer.last_round;
    size = static_cast<std::size_t>(offer.last_nodes);
    ++here;
  }
  return last >= 0 && here + 1 >= size;
}

// Survivors of a takeover wait only briefly. A new job, or one without survivors, uses the user's
// last call timeout.
Ms Coordinator::last_call() const {
  const auto joined = roster_.in(Stage::joined);
  const bool survived = std::any_of(joined.begin(), joined.end(), [](const Member* member) {
    return member->offer.last_round >= 0;
  });
  return settings_.takeover && survived ? settings_.takeover_grace : settings_.last_call;
}

// Continues the previous coordinator's order of nodes and count of restarts, from the nodes' joins.
void Coordinator::seats_from_offers() {
  const auto joined = roster_.in(Stage::joined);
  std::int64_t last = -1;
  for (const Member* member : joined)
    last = std::max(last, member->offer.last_round);
  if (last < 0) {
    // No node is left of the job that counted the restarts: this is a new job.
    restarts_ = 0;
    return;
  }
  std::vector<std::pair<int, Nonce>> known;
  for (const Member* member : joined) {
    if (member->offer.last_round != last) continue;
    known.emplace_back(member->offer.last_rank, member->agent);
    restarts_ = std::max(restarts_, member->offer.restarts);
  }
  std::sort(known.begin(), known.end());
  seats_.reserve(known.size());
  for (const auto& [rank, agent] : known)
    seats_.push_back(agent);
  if (seats_.size() > settings_.max_nodes) seats_.resize(settings_.max_nodes);
  // A round number must never be given twice.
  next_round_ = std::max(next_round_, last + 1);
}

}  // namespace lockstep::rendezvous::hub
