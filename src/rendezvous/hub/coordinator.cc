// Presence, joins, failures and losses of nodes. coordinator_round.cc makes rounds,
// coordinator_takeover.cc adopts them, coordinator_end.cc ends the job, and coordinator_talk.cc has
// time, messages and reports.
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
      next_round_(settings_.first_round),
      restarts_(settings_.restarts),
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
  if (!proposal_) return false;
  auto& ranks = proposal_->ranks;
  const auto place = std::find(ranks.begin(), ranks.end(), gone);
  if (place == ranks.end()) return false;
  *place = peer;
  roster_.move(gone, peer, clock_.read(now)).repeats_join = true;
  admission_.forget(gone);
  outbox_.close(gone);
  // Ask rank 0 again: its answer may be lost with the old connection.
  if (place == ranks.begin() && !proposal_->store)
    outbox_.send(peer, StoreWanted{proposal_->number});
  return true;
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

// --- joining ---

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

void Coordinator::on_join(Member& member, Join join, Time now) {
  if (join.holds != Join::Holds::nothing && join.last_round >= 0)
    return on_resume(member, std::move(join), now);
  // A node without a last round was a spare, which ends well.
  if (over_before_ && join.last_round < 0) return outbox_.send(member.peer, Ended{});
  if (over())
    return refuse(
        member,
        {Why::closed, fmt::format("the rendezvous '{}' is closed: {}", settings_.run_id, why_over_),
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

void Coordinator::refuse(Member& member, const Refusal& refusal) {
  outbox_.send(member.peer, refusal);
  roster_.set_stage(member, Stage::idle);
}

// --- failures and losses ---

void Coordinator::on_failed(Member& member, const Failed& failed, Time now) {
  if (!in_round(member) || failed.round != current_->number() || over()) return;
  reports_.failed(member.rank());
  if (!current_->running()) {
    // The round is over already, but a final failure still ends the job.
    if (failed.final) spend_job(Outcome::failed, failed.line);
    return;
  }
  if (failed.final || !current_->may_restart(restarts_)) {
    // A node that reports a final failure already expects the end. A node with a larger
    // --max-restarts than another node's expects a restart, so the end must be sent to that node as
    // well.
    interrupt(true, failed.line, failed.final ? member.peer : 0);
    return spend_job(Outcome::failed, failed.line);
  }
  // Nodes of an adopted round that are still coming over count as present.
  const std::size_t on_their_way = inheritance_.adopting() ? not_come_over().size() : 0;
  if (roster_.viable() + on_their_way < settings_.min_nodes) {
    const std::string text = failed.line + "; too many nodes have left for another round";
    interrupt(true, text, 0);
    return give_up_round(text);
  }
  count_restart();
  interrupt(false, failed.line, member.peer);
  consider(now);
}

void Coordinator::count_restart() {
  if (!current_->pay()) return;
  ++restarts_;
  write_down();
}

// Tells every node of the round except `except`, once, that the round is over.
void Coordinator::interrupt(bool end, const std::string& why, PeerId except) {
  if (!running()) return;
  current_->interrupt();
  // Spares have waited without a limit. Their join timeout starts now.
  forming_since_ = clock_.last_tick();
  const auto bytes = Outbox::bytes_of(Interrupted{current_->number(), end, why});
  for (const auto& [peer, member] : roster_.members()) {
    if (peer != except && in_round(member)) outbox_.send_shared(peer, bytes);
  }
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
  if (proposal_ &&
      std::find(proposal_->ranks.begin(), proposal_->ranks.end(), peer) != proposal_->ranks.end())
    proposal_.reset();
  if (over()) {
    if (reports_.until() && reports_.complete(roster_.ranked())) push_reports();
    return;
  }
  // A finished node is not missed: its workers have done their part.
  if (running() && gone.stage() == Stage::finished) {
    current_->finished_node_left(gone.rank());
    write_down();
    check_all_finished();
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

void Coordinator::lose(PeerId peer, const std::string& why, Time now) {
  remove(peer, "is gone: " + why, now);
}

void Coordinator::missing_from_round(const std::string& why) {
  if (roster_.viable() >= settings_.min_nodes) return interrupt(false, why, 0);
  if (awaits_replacement(why)) return;
  const std::string text =
      fmt::format("{}; {} {} left of at least {}", why, roster_.viable(),
                  roster_.viable() == 1 ? "node is" : "nodes are", settings_.min_nodes);
  interrupt(true, text, 0);
  give_up_round(text);
}

// Waits for a replacement instead of ending the job with too few nodes, if a restart is left. The
// next agent of this run id takes the place of the lost node. All losses before the next round cost
// one restart together, a failed worker included. Returns false if the job must end.
bool Coordinator::awaits_replacement(const std::string& why) {
  if (!current_ || !current_->replaceable(restarts_)) return false;
  // No node is left to wait.
  if (roster_.taking_part() == 0) return false;
  count_restart();
  current_->await_replacement(why);
  interrupt(false,
            fmt::format("{}; restart {} of {}, and up to {} s for another node to take its place",
                        why, restarts_, current_->max_restarts(),
                        std::chrono::ceil<std::chrono::seconds>(replacement_time()).count()),
            0);
  return true;
}

// Returns how long the most patient remaining node waits.
Ms Coordinator::replacement_time() const {
  std::uint32_t most = 0;
  for (const auto& [peer, member] : roster_.members())
    if (member.rank() >= 0) most = std::max(most, member.offer.join_timeout_ms);
  return Ms(most);
}

}  // namespace lockstep::rendezvous::hub
