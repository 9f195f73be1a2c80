#include "rendezvous/dynamic/dynamic_state.h"

#include "base/error.h"
#include "rendezvous/dynamic/seats.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::dynamic {
namespace {

using Kind = Step::Kind;

constexpr Period kMostAhead = std::chrono::hours(1);  // clocks further ahead are wrong; ignore them
// How long after a timeout this node still removes itself from the lists.
constexpr Period kRollback = std::chrono::seconds(5);

Period between(SteadyTime from, SteadyTime to) {
  return std::chrono::duration_cast<Period>(to - from);
}

Step step(Kind kind, RendezvousState state) {
  return {kind, std::move(state), {}};
}

}  // namespace

void Observer::observe(const RendezvousState& state, SteadyTime now, Period max_gap) {
  if (last_) watched_ += std::clamp(between(*last_, now), Period(0), max_gap);
  last_ = now;
  std::erase_if(heartbeats_,
                [&](const auto& seen) { return !state.last_heartbeats.contains(seen.first); });
  for (const auto& [node, time] : state.last_heartbeats) {
    const auto [seen, fresh] = heartbeats_.try_emplace(node, Seen<UtcTime>{time, watched_});
    if (!fresh && seen->second.value != time) seen->second = {time, watched_};
  }
  if (!state.deadline) {
    deadline_.reset();
  } else if (!deadline_ || deadline_->value != *state.deadline) {
    deadline_ = {*state.deadline, watched_};
  }
}

Period Observer::unchanged(const Node& node) const {
  const auto seen = heartbeats_.find(node);
  return seen == heartbeats_.end() ? Period(0) : watched_ - seen->second.since;
}

Period Observer::deadline_unchanged() const {
  return deadline_ ? watched_ - deadline_->since : Period(0);
}

DynamicMember::DynamicMember(Node self, DynamicSettings settings)
    : self_(std::move(self)), settings_(settings) {}

void DynamicMember::begin(Op op, Now now) {
  op_ = op;
  left_ = false;
  filed_round_.reset();
  const Period allowed = op == Op::keep_alive                ? settings_.heartbeat_timeout
                         : op == Op::close || op == Op::fail ? settings_.close_timeout
                                                             : settings_.join_timeout;
  deadline_ = now.steady + allowed;
}

Step DynamicMember::next(const RendezvousState& stored, Now now) {
  RendezvousState state = sanitize(stored, now);
  switch (op_) {
    case Op::leave:
      return next_leave(std::move(state), now);
    case Op::withdraw:
      return next_withdraw(std::move(state), now);
    case Op::keep_alive:
      return next_keep_alive(std::move(state), now);
    case Op::close:
    case Op::fail:
      return next_close(std::move(state), now);
    case Op::join:
      break;
  }
  // A newer round means that another node has carried out our wish and taken this node out of the
  // previous round.
  if (filed_round_ && state.round > *filed_round_) left_ = true;
  if (!left_ && state.participants.contains(self_)) {
    const JoinWish wish{self_, state.round, true, seat_};
    // Only leaving a complete round may be delegated: while a round forms, the node need not leave.
    const bool others_may = state.complete && !settings_.exact;
    Step leaving = next_leave(std::move(state), now);
    if (others_may && leaving.is(Kind::write)) leaving.wish = wish;
    return leaving;
  }
  left_ = true;
  return next_join(std::move(state), now);
}

RendezvousState DynamicMember::sanitize(const RendezvousState& stored, Now now) {
  // A gap longer than a heartbeat interval means that this process was stopped or cut off.
  observer_.observe(stored, now.steady, settings_.keep_alive_interval);
  RendezvousState state = stored;
  bool participant_gone = false;
  for (const auto& [node, heartbeat] : stored.last_heartbeats) {
    if (!dead(node, heartbeat, now)) continue;
    state.last_heartbeats.erase(node);
    participant_gone |= state.participants.erase(node) > 0;
    state.wait_list.erase(node);
    state.redundancy_list.erase(node);
  }
  if (participant_gone) after_removal(state);
  return state;
}

std::size_t DynamicMember::waiting(const RendezvousState& state) const {
  // torchrun starts a round for any waiting node. Count only nodes that the round has room for, or
  // running agents would restart for nodes that then become spares.
  if (settings_.exact) return state.wait_list.size();
  const std::size_t taken = std::min(state.participants.size(), settings_.max_nodes);
  return std::min(state.wait_list.size(), settings_.max_nodes - taken);
}

Step DynamicMember::next_leave(RendezvousState state, Now now) const {
  if (!state.participants.contains(self_)) return step(Kind::done, std::move(state));
  if (now.steady > deadline_) return step(Kind::timed_out, std::move(state));
  remove(state, self_);
  return step(Kind::write, std::move(state));
}

Step DynamicMember::next_withdraw(RendezvousState state, Now now) const {
  if (!takes_part(state, self_)) return step(Kind::done, std::move(state));
  if (now.steady > deadline_) return step(Kind::timed_out, std::move(state));
  remove(state, self_);
  return step(Kind::write, std::move(state));
}

Step DynamicMember::next_keep_alive(RendezvousState state, Now now) const {
  if (!keep_alive_due(state, now)) return step(Kind::done, std::move(state));
  if (now.steady > deadline_) return step(Kind::timed_out, std::move(state));
  state.last_heartbeats[self_] = heartbeat(state, now);
  return step(Kind::write, std::move(state));
}

Step DynamicMember::next_close(RendezvousState state, Now now) const {
  // An evicted node must not close the rendezvous: the survivors' round goes on.
  const bool given_up = op_ == Op::fail && !state.participants.contains(self_);
  if (state.closed || given_up) return step(Kind::done, std::move(state));
  if (now.steady > deadline_) return step(Kind::timed_out, std::move(state));
  state.closed = true;
  return step(Kind::write, std::move(state));
}

// Implements torchrun's join rules; the first that applies wins. The numbers are those of
// dynamic_state_test.cc.
Step DynamicMember::next_join(RendezvousState state, Now now) {
  const bool spare = state.redundancy_list.contains(self_);
  if (state.closed)
    return step(spare ? Kind::graceful_exit : Kind::closed, std::move(state));  // 1, 2
  if (spare) return join_as_spare(std::move(state), now);                       // 3, 4
  const bool member = state.participants.contains(self_);
  if (state.complete && member && whole(state)) {  // 5
    seat_ = state.participants.at(self_);
    seats_ = state.participants;
    return step(Kind::done, std::move(state));
  }
  if (now.steady > deadline_) return join_late(std::move(state), now);  // 6, 7
  if (state.complete) return join_complete(std::move(state), now);      // 8, 9, 12, 13
  return join_forming(std::move(state), now);                           // 10, 11, 12, 13
}

Step DynamicMember::join_as_spare(RendezvousState state, Now now) {
  // No timeout applies while the round is full: a spare waits as long as the job runs.
  if (state.participants.size() >= settings_.max_nodes)
    return keep_alive_or_wait(std::move(state), now);
  // A place is free. The spare becomes an ordinary newcomer and gets the full join timeout.
  deadline_ = now.steady + settings_.join_timeout;
  remove(state, self_);
  return step(Kind::write, std::move(state));
}

Step DynamicMember::join_late(RendezvousState state, Now now) const {
  // After a timeout, stop waiting only when the removal is stored, or other nodes would count on
  // this node. kRollback bounds the attempts.
  const bool listed = state.participants.contains(self_) || state.wait_list.contains(self_);
  if (!listed || now.steady > deadline_ + kRollback) return step(Kind::timed_out, std::move(state));
  remove(state, self_);
  return step(Kind::write, std::move(state));
}

Step DynamicMember::join_complete(RendezvousState state, Now now) const {
  if (state.participants.contains(self_)) {  // not whole: a participant has left, see the header
    remove(state, self_);
    return step(Kind::write, std::move(state));
  }
  const bool room = state.participants.size() < settings_.max_nodes;
  const bool waits = state.wait_list.contains(self_);
  // torchrun lets a waiting node wait even if the round has filled up. Here such a node goes on to
  // enter_self() and becomes a spare.
  if (waits && (room || settings_.exact)) return keep_alive_or_wait(std::move(state), now);
  return enter_self(std::move(state), now);
}

Step DynamicMember::join_forming(RendezvousState state, Now now) const {
  if (state.participants.contains(self_)) {
    const std::size_t count = state.participants.size();
    // A count above max_nodes means that another node has a larger --nnodes. torchrun's agents do
    // not complete such a round either.
    if (count < settings_.min_nodes || count > settings_.max_nodes || !last_call_over(state, now))
      return keep_alive_or_wait(std::move(state), now);
    complete(state);
    return step(Kind::write, std::move(state));
  }
  return enter_self(std::move(state), now);
}

Step DynamicMember::enter_self(RendezvousState state, Now now) const {
  std::optional<JoinWish> wish;
  if (!settings_.exact) wish = JoinWish{self_, state.round, false, seat_};
  enter(state, self_, seat_, {now.wall, heartbeat(state, now)});
  Step entered = step(Kind::write, std::move(state));
  entered.wish = std::move(wish);
  return entered;
}

// Adds a node to the forming round. If the round is complete, adds the node to the wait list of the
// next one, or to the spares if the round is full.
void DynamicMember::enter(RendezvousState& state, const Node& node, std::int64_t seat,
                          Moment moment) const {
  state.wait_list.erase(node);
  state.last_heartbeats[node] = moment.heartbeat;
  if (state.complete) {
    const bool room = state.participants.size() < settings_.max_nodes;
    (room ? state.wait_list : state.redundancy_list).insert(node);
    return;
  }
  state.participants[node] = settings_.exact ? 0 : seat + 1;
  const std::size_t count = state.participants.size();
  // torchrun's rule: the last call starts when the count becomes exactly min, and is not restarted.
  if (count == settings_.min_nodes) state.deadline = moment.wall + settings_.last_call_timeout;
  if (count == settings_.max_nodes) complete(state);
}

// Carries out a wish if possible; returns whether the wish was granted. A wish is void if the state
// has moved on: its node has acted by itself meanwhile.
bool DynamicMember::grant(RendezvousState& state, const JoinWish& wish, Moment moment) const {
  const Node& node = wish.node;
  if (state.closed || state.round != wish.round || state.redundancy_list.contains(node) ||
      presumed_dead_.contains(node))
    return false;
  if (state.participants.contains(node)) {
    if (wish.again != state.complete) return false;
    // An earlier writer has already let the node in.
    if (!wish.again) return true;
    remove(state, node);
  } else if (wish.again) {
    return false;
  }
  if (!state.complete || !state.wait_list.contains(node)) enter(state, node, wish.seat, moment);
  return true;
}

// Moves waiting nodes of the previous round into the new one at once, with their old seats.
// Otherwise a newcomer could take the seat of a node that only waited for the others to leave.
void DynamicMember::enter_from_wait_list(RendezvousState& state, Moment moment) const {
  for (const auto& [node, seat] : seats_)
    if (!state.complete && state.wait_list.contains(node) && badge_of(node))
      enter(state, node, seat, moment);
}

DynamicMember::Folded DynamicMember::fold(const RendezvousState& stored,
                                          std::span<const std::optional<JoinWish>> wishes,
                                          const JoinWish& own, Now now) {
  Folded folded{sanitize(stored, now), {}};
  folded.granted.reserve(wishes.size());
  const Moment moment{now.wall, heartbeat(folded.state, now)};
  for (const auto& wish : wishes) {
    const bool begins = !folded.state.complete;
    folded.granted.push_back(wish && grant(folded.state, *wish, moment));
    // This wish was the last leave of the old round: a new round forms from here on.
    if (!begins && !folded.state.complete) enter_from_wait_list(folded.state, moment);
  }
  grant(folded.state, own, moment);
  enter_from_wait_list(folded.state, moment);
  return folded;
}

std::string DynamicMember::terms() const {
  return fmt::format("{}:{}:{}:{}", settings_.min_nodes, settings_.max_nodes,
                     settings_.last_call_timeout.count(), static_cast<int>(settings_.order));
}

Step DynamicMember::keep_alive_or_wait(RendezvousState state, Now now) const {
  if (!keep_alive_due(state, now))
    return {Kind::wait, std::move(state), now.steady + settings_.poll_interval};
  state.last_heartbeats[self_] = heartbeat(state, now);
  return step(Kind::write, std::move(state));
}

// Returns the heartbeat to write. torchrun's agents compare heartbeats with their own clocks. If
// one of them is ahead, our heartbeat follows, or that agent would evict this node.
UtcTime DynamicMember::heartbeat(const RendezvousState& state, Now now) const {
  UtcTime time = now.wall;
  if (settings_.exact) return time;
  for (const auto& [node, last] : state.last_heartbeats) {
    if (node == self_ || badge_of(node)) continue;
    const UtcTime theirs = last + observer_.unchanged(node);
    // Advance the peer's heartbeat by the time since its last change.
    if (theirs < now.wall + kMostAhead) time = std::max(time, theirs);
  }
  return time;
}

bool DynamicMember::dead(const Node& node, UtcTime heartbeat, Now now) const {
  if (settings_.exact) return heartbeat < now.wall - settings_.eviction_time();
  // A closed connection counts as death at once. A newer heartbeat disproves the death.
  const auto last = presumed_dead_.find(node);
  if (last != presumed_dead_.end() && last->second == heartbeat) return true;
  return node != self_ && observer_.unchanged(node) > settings_.eviction_time();
}

bool DynamicMember::keep_alive_due(const RendezvousState& state, Now now) const {
  const auto own = state.last_heartbeats.find(self_);
  // A peer has evicted this node. As in torchrun a heartbeat alone does not bring a node back.
  if (own == state.last_heartbeats.end()) return false;
  if (settings_.exact) return own->second <= now.wall - settings_.keep_alive_interval;
  return observer_.unchanged(self_) >= settings_.keep_alive_interval;
}

bool DynamicMember::last_call_over(const RendezvousState& state, Now now) const {
  if (!state.deadline) return false;
  if (settings_.exact) return *state.deadline < now.wall;
  // Another node's clock wrote the deadline, so measure from when this agent first saw the
  // deadline.
  return observer_.deadline_unchanged() > settings_.last_call_timeout;
}

bool DynamicMember::whole(const RendezvousState& state) const {
  if (settings_.exact) return true;
  std::set<std::int64_t> ranks;
  // Ranks must be exactly 0 to n-1. A gap means that a participant left after the completion.
  for (const auto& [node, rank] : state.participants)
    ranks.insert(rank);
  const auto count = static_cast<std::int64_t>(state.participants.size());
  if (std::ssize(ranks) != count || *ranks.begin() != 0 || *ranks.rbegin() != count - 1)
    return false;
  // A record of an older round does not count: torchrun completed this round and carried our record
  // along.
  return !state.completion || state.completion->round != state.round ||
         state.completion->world == count;
}

void DynamicMember::complete(RendezvousState& state) const {
  state.complete = true;
  state.deadline.reset();
  if (settings_.exact) {
    std::int64_t rank = 0;
    for (auto& [node, given] : state.participants)
      given = rank++;
    return;
  }
  assign_seats(state.participants, settings_.order);
  state.completion = Completion{state.round, std::ssize(state.participants)};
}

void DynamicMember::after_removal(RendezvousState& state) const {
  // torchrun's rule: the last participant to leave a complete round opens the next one.
  if (state.complete) {
    if (!state.participants.empty()) return;
    state.complete = false;
    ++state.round;
  } else if (state.participants.size() < settings_.min_nodes) {
    state.deadline.reset();
  }
}

void DynamicMember::remove(RendezvousState& state, const Node& node) const {
  const bool participant = state.participants.erase(node) > 0;
  state.wait_list.erase(node);
  state.redundancy_list.erase(node);
  state.last_heartbeats.erase(node);
  if (participant) after_removal(state);
}

RoundPlace place_of(const RendezvousState& state, const Node& self) {
  const auto own = state.participants.find(self);
  LOCKSTEP_CHECK(own != state.participants.end());
  RoundPlace place{state.round, 0, {}};
  std::vector<std::pair<std::int64_t, Node>> by_rank;
  by_rank.reserve(state.participants.size());
  for (const auto& [node, rank] : state.participants)
    by_rank.emplace_back(rank, node);
  std::sort(by_rank.begin(), by_rank.end());
  place.nodes.reserve(by_rank.size());
  for (auto& [rank, node] : by_rank) {
    if (node == self) place.rank = place.nodes.size();
    place.nodes.push_back(std::move(node));
  }
  return place;
}

bool takes_part(const RendezvousState& state, const Node& node) {
  return state.participants.contains(node) || state.wait_list.contains(node) ||
         state.redundancy_list.contains(node);
}

}  // namespace lockstep::rendezvous::dynamic
