// Connections, joins, reports and departures of nodes, and time. coordinator_round.cc makes rounds
// and ends them.
#include "rendezvous/hub/coordinator.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::hub {

Coordinator::Coordinator(CoordinatorSettings settings, Time now)
    : settings_(std::move(settings)),
      clock_(settings_.heartbeat, now),
      admission_(settings_),
      inheritance_(settings_),
      seats_(settings_),
      next_(settings_),
      job_(settings_),
      forming_since_(now),
      next_beat_(now + settings_.heartbeat) {}

void Coordinator::arrive(PeerId peer, const Nonce& agent, const std::string& name, Time now) {
  // The agent id is known: the agent has lost its old connection before this hub noticed.
  if (const Member* known = roster_.of(agent)) {
    const PeerId gone = known->peer;
    if (keep_offered_place(gone, peer, now)) return;
    expect_back(*known, now);
    outbox_.close(gone);
    remove(gone, "came back on a new connection", now);
  }
  Member& member = roster_.add(peer, agent, name, clock_.read(now));
  // A node of an interrupted round has a seat in it. Wait for the node, which will join again.
  const auto rank = seats_.rank_of(agent);
  if (current_ && !current_->running() && !over() && rank) {
    roster_.set_rank(member, *rank);
    member.returning = true;
    roster_.set_stage(member, Stage::placed);
  }
  consider(now);
}

// Lets a node keep its place in the round being offered while the node changes its connection.
// Giving that round up would make all other nodes wait once more. Returns false if the node has
// none.
bool Coordinator::keep_offered_place(PeerId gone, PeerId peer, Time now) {
  if (!next_.move(gone, peer)) return false;
  roster_.move(gone, peer, clock_.read(now)).repeats_join = true;
  admission_.forget(gone);
  outbox_.close(gone);
  // Ask rank 0 again: its answer may be lost with the old connection.
  if (next_.awaits_store() && next_.offered()->first() == peer)
    outbox_.send(peer, StoreWanted{next_.offered()->number});
  return true;
}

void Coordinator::count_vote_only(PeerId peer, Time now) {
  Member* const member = roster_.find(peer);
  if (member == nullptr || member->stage() != Roster::Stage::idle) return;
  roster_.set_stage(*member, Roster::Stage::vote_only);
  consider(now);
}

void Coordinator::hear(PeerId peer, Time now) {
  roster_.hear(peer, clock_.read(now));
}

Status Coordinator::take(PeerId peer, Frame frame, Time now) {
  Member* const from = roster_.find(peer);
  // The member has left, or its connection was closed while frames were still queued.
  if (from == nullptr) return {};
  Member& member = *from;
  if (std::holds_alternative<Beat>(frame)) return {};
  if (auto* join = std::get_if<Join>(&frame)) {
    on_join(member, std::move(*join), now);
  } else if (auto* store = std::get_if<StoreOffer>(&frame)) {
    on_store(member, *store, now);
  } else if (auto* failed = std::get_if<Failed>(&frame)) {
    on_failed(member, *failed, now);
  } else if (auto* finish = std::get_if<Finish>(&frame)) {
    on_finish(member, *finish);
  } else if (auto* news = std::get_if<News>(&frame)) {
    on_news(member, std::move(*news));
  } else if (auto* tell = std::get_if<TellReport>(&frame)) {
    on_report(member, std::move(*tell), now);
  } else if (auto* leave = std::get_if<Leave>(&frame)) {
    on_leave(member, leave->how, now);
  } else {
    return fail(Errc::corrupt,
                fmt::format("a '{}' frame, which agents do not send", frame_name(frame)));
  }
  return {};
}

void Coordinator::lose(PeerId peer, const std::string& why, Time now) {
  remove(peer, "is gone: " + why, now);
}

void Coordinator::remove(PeerId peer, const std::string& why, Time now) {
  const std::optional<Member> left = roster_.remove(peer);
  if (!left) return;
  const Member& gone = *left;
  admission_.forget(peer);
  // The node may need more than one new connection to come back.
  if (gone.returning) expect_back(gone, now);
  reports_.leave(gone.rank());
  // The offered round has lost a node: make the round anew.
  if (next_.has(peer)) next_.drop();
  if (over()) {
    if (reports_.until() && reports_.complete(roster_.ranked())) push_reports();
    return;
  }
  if (gone.stage() == Stage::vote_only) return;
  // A finished node is not missed: its workers have done their part.
  if (running() && gone.stage() == Stage::finished) {
    current_->finished_node_left(gone.rank());
    write_down();
  } else if (running() ? gone.stage() == Stage::placed
                       : current_ && roster_.viable() < settings_.min_nodes) {
    missing_from_round(gone.called() + " " + why);
  }
  consider(now);
}

// Makes the next round wait for a node of the current round that will be back on a new connection.
void Coordinator::expect_back(const Member& member, Time now) {
  if (!over() && member.rank() >= 0 && member.stage() != Stage::idle)
    roster_.expect_back(member, now + settings_.return_grace);
}

// --- joining ---

void Coordinator::on_join(Member& member, Join join, Time now) {
  if (join.holds != Join::Holds::nothing && join.last_round >= 0)
    return on_resume(member, std::move(join), now);
  // A node without a last round was a spare, which ends well.
  if (over_before_ && join.last_round < 0) return outbox_.send(member.peer, Ended{});
  if (over())
    return refuse(member,
                  {Why::closed,
                   fmt::format("the rendezvous '{}' is closed: {}", settings_.run_id, job_.why()),
                   "give a new job a new --rdzv-id, or end the old job first"});
  // A node on a new connection repeats its join, maybe before it hears of its place. Taking the
  // repetition for a wish to leave would interrupt the round that has just begun.
  if (std::exchange(member.repeats_join, false)) return;
  if (admission_.hold(member, join, roster_, clock_.read(now))) return;
  if (!fits(member, join)) return remove(member.peer, "its settings do not fit", now);
  if (of_adopted_round(join) && take_seat(member, join)) roster_.set_stage(member, Stage::placed);
  // Decide before the stage changes below.
  const bool leaves_running = running() && in_round(member);
  member.offer = std::move(join);
  member.joined_at = now;
  member.returning = false;
  // The report belongs to the last round. In the next one the node may report again.
  reports_.forget(member.rank());
  roster_.set_stage(member, Stage::joined);
  if (leaves_running) interrupt(false, member.called() + " asks for a new round", member.peer);
  consider(now);
}

// Returns whether the node may take part, and turns it away otherwise.
bool Coordinator::fits(const Member& member, const Join& join) {
  auto [refusal, strangers] = admission_.compare(member, join, roster_);
  for (const auto& [peer, why] : strangers)
    refuse(roster_.at(peer), why);
  // After the strangers, whose node ranks are free now.
  if (!refusal) refusal = Admission::same_node_rank(member, join, roster_);
  if (refusal) outbox_.turn_away(member.peer, *refusal);
  return !refusal;
}

void Coordinator::decide_held_joins(Time now) {
  // Look each peer up again: on_join() may remove members.
  for (const PeerId peer : admission_.holding()) {
    if (auto join = admission_.release(peer)) on_join(roster_.at(peer), std::move(*join), now);
  }
}

void Coordinator::refuse(Member& member, const Refusal& refusal) {
  outbox_.send(member.peer, refusal);
  roster_.set_stage(member, Stage::idle);
}

// --- coming over, from another coordinator or a lost connection ---

// Handles a join of a node on a new connection whose workers still run or have ended well.
void Coordinator::on_resume(Member& member, Join join, Time now) {
  const std::int64_t round = join.last_round;
  if (over()) {
    // The node's workers ended well before the connection broke: it only missed the answer.
    if (job_.end() == End::succeeded && join.holds == Join::Holds::finished)
      return outbox_.send(member.peer, Finished{round});
    return outbox_.send(member.peer, Interrupted{round, true, job_.why()});
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
  if (current_ || !next_.is_first() || !inheritance_.has_round_of(offer)) return;
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
  return true;
}

// --- leaving ---

void Coordinator::on_leave(Member& member, Leave::How how, Time now) {
  const PeerId peer = member.peer;
  const std::string name = member.called();
  outbox_.send(peer, Left{});
  if (how == Leave::How::returns && !over()) {
    expect_back(member, now);
    return remove(peer, "has lost its connection to the rendezvous", now);
  }
  if (how == Leave::How::stopped) {
    // The hub goes with its node, so the job ends.
    if (member.agent == settings_.host)
      return shut_down(name + ", the host of the rendezvous, was stopped", now);
    return remove(peer, "was stopped", now);
  }
  if (!in_round(member) && !over()) return leave_without_place(member, now);
  const bool good = how == Leave::How::succeeded;
  const std::string why =
      good ? std::string("the job has ended well") : "the job has failed on " + name;
  if (!good && running() && in_round(member)) interrupt(true, why, peer);
  // A node that ends well without waiting must not end the job for the other nodes.
  if (good && running() && in_round(member)) {
    roster_.set_stage(member, Stage::finished);
    return remove(peer, "has left", now);
  }
  spend_job(good ? End::succeeded : End::failed, why);
  remove(peer, "has left", now);
}

// Removes a node without a place. The other nodes keep waiting, unless the node is their host.
void Coordinator::leave_without_place(Member& member, Time now) {
  if (member.agent != settings_.host) return remove(member.peer, "has left", now);
  const std::string& why = member.out_of_patience;
  shut_down(fmt::format("{}, the host of the rendezvous, has given up{}{}", member.called(),
                        why.empty() ? "" : ": ", why),
            now);
  remove(member.peer, "has left", now);
}

// --- news and reports ---

// Node 0 speaks to all, and all speak to node 0. Thousands of nodes may speak each second, so node
// 0 is not searched for.
void Coordinator::on_news(const Member& member, News news) {
  if (!running() || !in_round(member) || news.round != current_->number()) return;
  news.from = member.rank();
  const auto bytes = Outbox::bytes_of(std::move(news));
  if (member.rank() == 0) {
    for (const auto& [peer, other] : roster_.members())
      if (other.rank() > 0 && in_round(other)) outbox_.send_shared(peer, bytes);
    return;
  }
  const Nonce* lead = seats_.agent_at(0);
  const Member* to = lead == nullptr ? nullptr : roster_.of(*lead);
  if (to != nullptr && in_round(*to)) outbox_.send_shared(to->peer, bytes);
}

void Coordinator::on_report(Member& member, TellReport tell, Time now) {
  if (member.rank() < 0 || !current_) return;
  // This report comes too late: the answer was sent already.
  if (reports_.answer()) return outbox_.send_shared(member.peer, reports_.answer());
  reports_.tell(member.rank(), std::move(tell), now);
  if (reports_.complete(roster_.ranked())) push_reports();
}

void Coordinator::push_reports() {
  const std::set<int> waiting = reports_.close();
  for (const auto& [peer, member] : roster_.members()) {
    if (waiting.contains(member.rank())) outbox_.send_shared(peer, reports_.answer());
  }
}

// --- time ---

Time Coordinator::next_time() const {
  Time next = next_beat_;
  if (const auto until = next_.last_call_until()) next = std::min(next, *until);
  if (const auto until = reports_.until()) next = std::min(next, *until);
  if (const auto ends = adoption_ends()) next = std::min(next, *ends);
  return next;
}

void Coordinator::tick(Time now) {
  // First: the rules below measure silence on that clock.
  clock_.tick(now);
  if (reports_.until() && now >= *reports_.until()) push_reports();
  if (now >= next_beat_) {
    next_beat_ = now + settings_.heartbeat;
    watch_silence(now);
    expire(now);
    decide_held_joins(now);
    beat();
  }
  consider(now);
}

void Coordinator::watch_silence(Time now) {
  for (const PeerId peer : roster_.silent(clock_.at_tick(), settings_.dead)) {
    const Member* member = roster_.find(peer);
    if (member == nullptr) continue;
    const std::string time = fmt::format("{:.1f} s", seconds(clock_.at_tick() - member->heard));
    // The node may only have been frozen or cut off. It reads this frame when it wakes up.
    if (in_round(*member))
      outbox_.send(
          peer,
          Interrupted{current_->number(), false,
                      "the other nodes took this node for gone: no sign of life for " + time});
    outbox_.close(peer);
    lose(peer, "no sign of life for " + time, now);
  }
}

void Coordinator::expire(Time now) {
  while (const auto name = roster_.take_overdue(now)) {
    if (roster_.viable() < settings_.min_nodes)
      return missing_from_round(*name + " is gone: it lost its connection and did not come back");
  }
  // A rank 0 that keeps silent about its store would block all other nodes.
  if (next_.is_late(now)) {
    const PeerId peer = next_.offered()->first();
    outbox_.close(peer);
    lose(peer, "no answer to the request for the workers' store", now);
  }
  // A spare waits as long as the round runs.
  if (over() || running() || next_.offered() != nullptr) return;
  for (Member* member : roster_.in(Stage::joined)) {
    if (member->offer.join_timeout_ms == 0) continue;
    const Ms allowed(member->offer.join_timeout_ms);
    if (now - waits_since(*member, forming_since_) < allowed) continue;
    member->out_of_patience =
        fmt::format("joining the rendezvous '{}' timed out after {:.0f} s: {}", settings_.run_id,
                    seconds(allowed), status());
    refuse(*member, {Why::timeout, member->out_of_patience, {}});
  }
}

void Coordinator::beat() {
  const auto plain = Outbox::bytes_of(Beat{});
  const auto waiting = Outbox::bytes_of(Beat{status()});
  const auto done = Outbox::bytes_of(Beat{barrier_words(standing())});
  for (const auto& [peer, member] : roster_.members())
    outbox_.beat(peer, member.stage() == Stage::joined     ? waiting
                       : member.stage() == Stage::finished ? done
                                                           : plain);
}

Standing Coordinator::standing() const {
  return {settings_, roster_, current(), next_, forming_since_, clock_.last_tick()};
}

std::string Coordinator::status() const {
  return over() ? job_.why() : waiting_words(standing());
}

std::string Coordinator::present() const {
  return roster_.names({Stage::idle, Stage::joined, Stage::placed, Stage::finished}, false);
}

}  // namespace lockstep::rendezvous::hub
