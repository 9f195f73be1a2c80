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
      next_round_(settings_.first_round),
      restarts_(settings_.restarts),
      forming_since_(now),
      last_tick_(now),
      next_beat_(now + settings_.heartbeat) {}

void Coordinator::set_stage(Member& member, Stage stage) {
  --counts_[static_cast<std::size_t>(member.stage)];
  ++counts_[static_cast<std::size_t>(stage)];
  member.stage = stage;
}

// Returns how many nodes a round could still have. Nodes expected back count.
std::size_t Coordinator::viable() const {
  return count(Stage::joined) + count(Stage::placed) + count(Stage::finished) + away_.size();
}

void Coordinator::arrive(PeerId peer, const Nonce& agent, const std::string& name, Time now) {
  // The agent id is known: the agent has lost its old connection before this hub noticed.
  if (const auto known = peer_of_.find(agent); known != peer_of_.end()) {
    const PeerId gone = known->second;
    if (keep_offered_place(gone, peer, now)) return;
    expect_back(members_.at(gone), now);
    output_.push_back({gone, nullptr, true});
    remove(gone, "came back on a new connection", now);
  }
  Member& member = members_[peer];
  peer_of_[agent] = peer;
  member.peer = peer;
  member.agent = agent;
  member.name = name;
  member.arrival = ++arrivals_;
  member.heard = watched_ + unwatched(now);
  ++counts_[static_cast<std::size_t>(Stage::idle)];
  away_.erase(agent);
  // A node of an interrupted round has a seat in it. Wait for the node, which will join again.
  const auto seat = std::find(seats_.begin(), seats_.end(), agent);
  if (current_ && current_->interrupted && !over() && seat != seats_.end()) {
    member.rank = static_cast<int>(seat - seats_.begin());
    ++ranked_;
    member.returning = true;
    set_stage(member, Stage::placed);
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
  auto entry = members_.extract(gone);
  entry.key() = peer;
  Member& member = members_.insert(std::move(entry)).position->second;
  member.peer = peer;
  peer_of_[member.agent] = peer;
  member.heard = watched_ + unwatched(now);
  member.repeats_join = true;
  output_.push_back({gone, nullptr, true});
  // Ask rank 0 again: its answer may be lost with the old connection.
  if (place == ranks.begin() && !proposal_->store) send(peer, StoreWanted{proposal_->number});
  return true;
}

void Coordinator::hear(PeerId peer, Time now) {
  const auto at = members_.find(peer);
  if (at != members_.end()) at->second.heard = watched_ + unwatched(now);
}

Status Coordinator::take(PeerId peer, Frame frame, Time now) {
  const auto at = members_.find(peer);
  // The member has left, or its connection was closed while frames were still queued.
  if (at == members_.end()) return {};
  Member& member = at->second;
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

bool Coordinator::fits(const Member& member, const Join& join) {
  const auto counts = [](std::size_t least, std::size_t most) {
    return least == most ? fmt::format("{}", least) : fmt::format("{}:{}", least, most);
  };
  if (join.min_nodes != settings_.min_nodes || join.max_nodes != settings_.max_nodes) {
    const std::string text =
        fmt::format("{} asks for --nnodes {}, the rendezvous '{}' was opened with --nnodes {}",
                    join.host, counts(join.min_nodes, join.max_nodes), settings_.run_id,
                    counts(settings_.min_nodes, settings_.max_nodes));
    turn_away(member, text, "give every node the same --nnodes");
    return false;
  }
  if (!launches_the_same(member, join)) return false;
  const Member* other = of_node_rank(member, join);
  if (other == nullptr) return true;
  const std::string text =
      fmt::format("two nodes have --node-rank {}: {} ({}) and {} ({})", join.node_rank,
                  other->called(), other->offer.address, join.host, join.address);
  turn_away(member, text, "give every node a --node-rank of its own");
  return false;
}

// Returns the other node with the same node rank as `join`, nullptr if the rank is free.
const Coordinator::Member* Coordinator::of_node_rank(const Member& member, const Join& join) const {
  if (join.node_rank < 0) return nullptr;
  for (const auto& [peer, other] : members_) {
    if (&other != &member && other.stage != Stage::idle && other.offer.node_rank == join.node_rank)
      return &other;
  }
  return nullptr;
}

// A host that was switched off and on again may join before the hub notices that the host's old
// connection is dead. Hold the join until the old connection is lost (the join succeeds) or sends
// bytes (two agents run on that host: refuse the join).
bool Coordinator::hold_for_twin(Member& member, Join& join, Time now) {
  const Member* twin = of_node_rank(member, join);
  const bool same_host =
      twin != nullptr && twin->called() == join.host && twin->offer.address == join.address;
  // A second call for the same join means that a tick has passed since the first.
  const Ms since = std::exchange(member.held_since, Ms(0));
  // The twin has sent bytes since the join was held, so two agents run on that host.
  if (!same_host || (since > Ms(0) && twin->heard > since)) return false;
  member.held_since = since > Ms(0) ? since : watched_ + unwatched(now) + Ms(1);
  member.held_join = std::move(join);
  return true;
}

void Coordinator::decide_held_joins(Time now) {
  // Collect the peers first: on_join() may remove members.
  std::vector<PeerId> holding;
  for (const auto& [peer, member] : members_) {
    if (member.held_join) holding.push_back(peer);
  }
  for (const PeerId peer : holding) {
    const auto at = members_.find(peer);
    if (at == members_.end() || !at->second.held_join) continue;
    Join join = std::move(*at->second.held_join);
    at->second.held_join.reset();
    on_join(at->second, std::move(join), now);
  }
}

// Returns whether `join` launches the same program as the nodes present, which decide for the job.
// One exception: a node of an earlier round overrules newcomers, because a stranger may be the
// first to arrive after a takeover.
bool Coordinator::launches_the_same(const Member& member, const Join& join) {
  // `any` and an untold name fit every program.
  if (join.launched.any || join.launched.name.empty()) return true;
  for (auto& [peer, other] : members_) {
    if (&other == &member || other.stage == Stage::idle) continue;
    const Launched& theirs = other.offer.launched;
    if (other.offer.role != join.role || theirs.any || theirs.name.empty()) continue;
    // The other node was compared with all before it, so one match is enough.
    if (theirs.name == join.launched.name) return true;
    const auto differs = other_program(facts_of(join), facts_of(other.offer), settings_.run_id);
    if (!differs) return true;
    // The node present never took part, and the joining one did: the node present is the stranger.
    const bool stranger = other.stage == Stage::joined && other.offer.last_round < 0;
    if (!stranger || join.last_round < 0) {
      turn_away(member, differs->message, differs->hint);
      return false;
    }
    refuse(other, Why::settings, differs->message, differs->hint);
  }
  return true;
}

// Closes the connection of a node whose settings do not fit.
void Coordinator::turn_away(const Member& member, const std::string& text,
                            const std::string& hint) {
  const Refusal refusal{Why::settings, text, hint};
  output_.push_back(
      {member.peer, std::make_shared<const std::string>(frame_bytes(refusal)), true, text});
}

void Coordinator::on_join(Member& member, Join join, Time now) {
  if (join.holds != Join::Holds::nothing && join.last_round >= 0)
    return on_resume(member, std::move(join), now);
  // A node without a last round was a spare, which ends well.
  if (over_before_ && join.last_round < 0) return send(member.peer, Ended{});
  if (over())
    return refuse(member, Why::closed,
                  fmt::format("the rendezvous '{}' is closed: {}", settings_.run_id, why_over_),
                  "give a new job a new --rdzv-id, or end the old job first");
  // A node on a new connection repeats its join, maybe before it hears of its place. Taking the
  // repetition for a wish to leave would interrupt the round that has just begun.
  if (std::exchange(member.repeats_join, false)) return;
  if (hold_for_twin(member, join, now)) return;
  if (!fits(member, join)) return remove(member.peer, "its settings do not fit", now);
  if (of_adopted_round(join) && take_seat(member, join)) set_stage(member, Stage::placed);
  // Decide before the stage changes below.
  const bool leaves_running = running() && in_round(member);
  member.offer = std::move(join);
  member.joined_at = now;
  member.returning = false;
  // The report belongs to the last round. In the next one the node may report again.
  reports_.forget(member.rank);
  set_stage(member, Stage::joined);
  if (leaves_running) interrupt(false, member.called() + " asks for a new round", member.peer);
  consider(now);
}

void Coordinator::refuse(Member& member, Why why, const std::string& text,
                         const std::string& hint) {
  send(member.peer, Refusal{why, text, hint});
  set_stage(member, Stage::idle);
}

// --- failures and losses ---

void Coordinator::on_failed(Member& member, const Failed& failed, Time now) {
  if (!in_round(member) || failed.round != current_->number || over()) return;
  reports_.failed(member.rank);
  if (current_->interrupted) {
    // The round is over already, but a final failure still ends the job.
    if (failed.final) spend_job(Outcome::failed, failed.line);
    return;
  }
  if (failed.final || restarts_ >= current_->lowest_max_restarts) {
    // A node that reports a final failure already expects the end. A node with a larger
    // --max-restarts than another node's expects a restart, so the end must be sent to that node as
    // well.
    interrupt(true, failed.line, failed.final ? member.peer : 0);
    return spend_job(Outcome::failed, failed.line);
  }
  // Nodes of an adopted round that are still coming over count as present.
  const std::size_t on_their_way = current_->adopting_since ? not_come_over().size() : 0;
  if (viable() + on_their_way < settings_.min_nodes) {
    const std::string text = failed.line + "; too many nodes have left for another round";
    interrupt(true, text, 0);
    return give_up_round(text);
  }
  ++restarts_;
  // One round costs at most one restart, whatever else fails before the next round.
  current_->paid = true;
  write_down();
  interrupt(false, failed.line, member.peer);
  consider(now);
}

// Tells every node of the round except `except`, once, that the round is over.
void Coordinator::interrupt(bool end, const std::string& why, PeerId except) {
  if (!running()) return;
  current_->interrupted = true;
  // Spares have waited without a limit. Their join timeout starts now.
  forming_since_ = last_tick_;
  const auto bytes =
      std::make_shared<const std::string>(frame_bytes(Interrupted{current_->number, end, why}));
  for (const auto& [peer, member] : members_) {
    if (peer != except && in_round(member)) send_shared(peer, bytes);
  }
}

void Coordinator::remove(PeerId peer, const std::string& why, Time now) {
  const auto at = members_.find(peer);
  if (at == members_.end()) return;
  Member gone = std::move(at->second);
  --counts_[static_cast<std::size_t>(gone.stage)];
  members_.erase(at);
  peer_of_.erase(gone.agent);
  // The node may need more than one new connection to come back.
  if (gone.returning) expect_back(gone, now);
  if (gone.rank >= 0) --ranked_;
  reports_.leave(gone.rank);
  // The offered round has lost a node: make the round anew.
  if (proposal_ &&
      std::find(proposal_->ranks.begin(), proposal_->ranks.end(), peer) != proposal_->ranks.end())
    proposal_.reset();
  if (over()) {
    if (reports_.until() && reports_.complete(ranked_)) push_reports();
    return;
  }
  // A finished node is not missed: its workers have done their part.
  if (running() && gone.stage == Stage::finished) {
    current_->finished_and_gone.push_back(gone.rank);
    write_down();
    check_all_finished();
  } else if (running() ? gone.stage == Stage::placed : current_ && viable() < settings_.min_nodes) {
    missing_from_round(gone.called() + " " + why);
  }
  consider(now);
}

// Makes the next round wait for a node of the current round that will be back on a new connection.
void Coordinator::expect_back(const Member& member, Time now) {
  if (!over() && member.rank >= 0 && member.stage != Stage::idle)
    away_[member.agent] = {member.called(), now + settings_.return_grace};
}

void Coordinator::lose(PeerId peer, const std::string& why, Time now) {
  remove(peer, "is gone: " + why, now);
}

void Coordinator::missing_from_round(const std::string& why) {
  if (viable() >= settings_.min_nodes) return interrupt(false, why, 0);
  if (awaits_replacement(why)) return;
  const std::string text =
      fmt::format("{}; {} {} left of at least {}", why, viable(),
                  viable() == 1 ? "node is" : "nodes are", settings_.min_nodes);
  interrupt(true, text, 0);
  give_up_round(text);
}

// Waits for a replacement instead of ending the job with too few nodes, if a restart is left. The
// next agent of this run id takes the place of the lost node. All losses before the next round cost
// one restart together, a failed worker included. A finished node that has left cannot be replaced:
// its workers would run once more. Returns false if the job must end.
bool Coordinator::awaits_replacement(const std::string& why) {
  if (!current_ || !current_->replacement || !current_->finished_and_gone.empty()) return false;
  if (!current_->paid && restarts_ >= current_->lowest_max_restarts) return false;
  // No node is left to wait.
  if (count(Stage::joined) + count(Stage::placed) + count(Stage::finished) == 0) return false;
  if (!std::exchange(current_->paid, true)) {
    ++restarts_;
    write_down();
  }
  current_->lost.push_back(why);
  interrupt(false,
            fmt::format("{}; restart {} of {}, and up to {} s for another node to take its place",
                        why, restarts_, current_->lowest_max_restarts,
                        std::chrono::ceil<std::chrono::seconds>(replacement_time()).count()),
            0);
  return true;
}

// Returns how long the most patient remaining node waits.
Ms Coordinator::replacement_time() const {
  std::uint32_t most = 0;
  for (const auto& [peer, member] : members_)
    if (member.rank >= 0) most = std::max(most, member.offer.join_timeout_ms);
  return Ms(most);
}

}  // namespace lockstep::rendezvous::hub
