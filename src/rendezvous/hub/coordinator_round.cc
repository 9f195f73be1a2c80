// Rounds: making one, what a failure or a loss does to it, and the end of the job.
#include "rendezvous/hub/coordinator.h"
#include "rendezvous/rank_exchange.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::hub {

// Takes the next step towards a round if one is due. Called after every event.
void Coordinator::consider(Time now) {
  if (over() || next_.offered() != nullptr) return;
  const std::size_t joined = roster_.count(Stage::joined);
  if (!adoption_settled(now)) return;
  if (running()) {
    // Once a node has finished, the job is about to end. Do not restart all workers for a newcomer.
    const bool room = current_->size() < settings_.max_nodes &&
                      roster_.count(Stage::finished) == 0 && current_->finished_and_gone().empty();
    if (joined == 0 || !room) return;
    interrupt(false, "new nodes want to take part: " + roster_.names({Stage::joined}, false), 0);
  }
  if ((current_ && current_->awaits_rejoin(roster_)) || joined < settings_.min_nodes)
    return next_.stop_last_call();
  // No last call after a round: its nodes have all been waited for already.
  if (current_ || joined >= settings_.max_nodes) return propose(now);
  const Seats::Nodes nodes = roster_.joined();
  if (inheritance_.taken_over()) {
    // Idle nodes have come over and will join once their workers are stopped.
    if (roster_.count(Stage::idle) > 0) return next_.stop_last_call();
    if (Inheritance::survivors_are_here(nodes)) return propose(now);
  }
  // The first survivor shortens a last call that is already running.
  if (next_.last_call(now, inheritance_.last_call(nodes))) propose(now);
}

void Coordinator::propose(Time now) {
  const Seats::Nodes joined = roster_.joined();
  if (seats_.empty()) inherit(joined);
  std::vector<PeerId> ranks;
  for (const Member* member : seats_.fill(joined))
    ranks.push_back(member->peer);
  const auto& offer = next_.offer(std::move(ranks), now);
  outbox_.send(offer.first(), StoreWanted{offer.number});
}

// Continues the previous coordinator's order of nodes and count of restarts, from the nodes' joins.
void Coordinator::inherit(const Seats::Nodes& joined) {
  const auto past = seats_.inherit(joined);
  // No node is left of the job that counted the restarts: this is a new job.
  job_.set_restarts(past ? std::max(job_.restarts(), past->restarts) : 0);
  if (past) next_.follow(past->round);
}

void Coordinator::on_store(Member& member, const StoreOffer& offer, Time now) {
  // An answer for an abandoned round.
  if (!next_.awaits(member.peer, offer)) return;
  if (!offer.error.empty() || offer.addr.empty()) {
    return give_up_round(fmt::format("{} is rank 0 and could not open the workers' store: {}",
                                     member.called(),
                                     offer.error.empty() ? "it has no address" : offer.error));
  }
  // In a fenced rendezvous the round must be recorded before any node may start workers.
  next_.open(offer);
  if (!job_.fenced()) return permit(offer.round, now);
  const Member* host = roster_.of(settings_.host);
  job_.ask(offer.round, host == nullptr ? -1 : next_.offered()->rank_of(host->peer));
}

void Coordinator::permit(std::int64_t round, Time now) {
  const auto offer = next_.take(round);
  // Too late: the round was abandoned.
  if (!offer) return;
  place(*offer);
  consider(now);
}

// Assigns ranks to the chosen nodes: the round runs.
void Coordinator::place(const NextRound::Offer& offer) {
  std::vector<RoleInfo> infos;
  std::vector<NodeFacts> nodes;
  infos.reserve(offer.ranks.size());
  for (const PeerId peer : offer.ranks) {
    const Join& join = roster_.at(peer).offer;
    infos.push_back({join.role, 0, join.local_world_size});
    nodes.push_back(facts_of(join));
  }
  const auto made_ranks = assign_ranks(infos);
  if (!made_ranks) return give_up_round(made_ranks.error().message);
  const std::vector<AssignedRanks>& ranks = *made_ranks;
  roster_.clear_ranks();
  current_.emplace(offer.number, infos.size());
  Seats::Nodes placed;
  for (const PeerId peer : offer.ranks) {
    placed.push_back(&roster_.at(peer));
    current_->admit(placed.back()->offer);
  }
  seats_.assign(placed);
  // Reports belong to one round. A report of an earlier round must not answer in this one.
  reports_ = ReportExchange();
  const std::vector<std::string> notes = differences(nodes);
  for (std::size_t i = 0; i < infos.size(); ++i) {
    Member& member = roster_.at(offer.ranks[i]);
    roster_.set_rank(member, static_cast<int>(i));
    roster_.set_stage(member, Stage::placed);
    outbox_.send(member.peer, Placed{{.number = offer.number,
                                      .restarts = job_.restarts(),
                                      .max_restarts = current_->max_restarts(),
                                      .group_rank = member.rank(),
                                      .group_world_size = static_cast<int>(infos.size()),
                                      .base_rank = static_cast<int>(ranks[i].base_rank),
                                      .world_size = static_cast<int>(ranks[i].world_size),
                                      .role_base_rank = static_cast<int>(ranks[i].role_base_rank),
                                      .role_world_size = static_cast<int>(ranks[i].role_world_size),
                                      .master_addr = offer.store.addr,
                                      .master_port = offer.store.port,
                                      .use_agent_store = true,
                                      .notes = notes}});
  }
}

// --- nodes of an adopted round ---

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

// --- failures and losses ---

void Coordinator::on_failed(Member& member, const Failed& failed, Time now) {
  if (!in_round(member) || failed.round != current_->number() || over()) return;
  reports_.failed(member.rank());
  if (!current_->running()) {
    // The round is over already, but a final failure still ends the job.
    if (failed.final) spend_job(End::failed, failed.line);
    return;
  }
  if (failed.final || !current_->may_restart(job_.restarts())) {
    // A node that reports a final failure already expects the end. A node with a larger
    // --max-restarts than another node's expects a restart, so the end must be sent to that node as
    // well.
    interrupt(true, failed.line, failed.final ? member.peer : 0);
    return spend_job(End::failed, failed.line);
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
  job_.set_restarts(job_.restarts() + 1);
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
  if (!current_ || !current_->replaceable(job_.restarts())) return false;
  // No node is left to wait.
  if (roster_.taking_part() == 0) return false;
  count_restart();
  current_->await_replacement(why);
  interrupt(false,
            fmt::format("{}; restart {} of {}, and up to {} s for another node to take its place",
                        why, job_.restarts(), current_->max_restarts(),
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

// --- the end ---

void Coordinator::on_finish(Member& member, const Finish& finish) {
  if (!running() || member.stage() != Stage::placed || finish.round != current_->number()) return;
  roster_.set_stage(member, Stage::finished);
  // A successor must know that the host's node has finished: the node may be lost with its host.
  if (member.agent == settings_.host) write_down();
}

void Coordinator::conclude() {
  if (!running() || over() || !current_->all_finished(roster_.count(Stage::finished))) return;
  const auto bytes = Outbox::bytes_of(Finished{current_->number()});
  for (const Member* member : roster_.in(Stage::finished))
    outbox_.send_shared(member->peer, bytes);
  spend_job(End::succeeded, "the job has ended well");
}

// Ends the job because no round can be made. Waiting nodes are refused rather than told that they
// were spares: they were to take part.
void Coordinator::give_up_round(const std::string& text) {
  next_.drop();
  for (Member* member : roster_.in(Stage::joined))
    refuse(*member, {Why::closed, text, {}});
  end_job(End::failed, text);
}

// Ends the job and tells the waiting nodes. In a job that has run, a spare hears that it was not
// needed, which counts as success. A waiting node that had a place has failed with the others.
void Coordinator::end_job(End end, const std::string& why) {
  if (over()) return;
  job_.end(end, why);
  next_.drop();
  next_.stop_last_call();
  roster_.expect_nobody();
  for (Member* member : roster_.in(Stage::joined)) {
    if (member->rank() >= 0 || !current_) {
      refuse(*member, {Why::closed, why, {}});
    } else {
      outbox_.send(member->peer, Ended{});
      roster_.set_stage(*member, Stage::idle);
    }
  }
}

// Ends the job and records the end, so that no later coordinator runs the job again. Missing nodes
// alone must not end a job for good: after all nodes were stopped, the same job may be started
// again.
void Coordinator::spend_job(End end, const std::string& why) {
  if (over()) return;
  end_job(end, why);
  write_down();
}

void Coordinator::write_down() {
  job_.write_down(current(), roster_.of(settings_.host));
}

void Coordinator::end_before(bool good, const std::string& why) {
  over_before_ = true;
  end_job(good ? End::succeeded : End::failed, why);
}

void Coordinator::shut_down(const std::string& why, Time /*now*/) {
  if (over()) return;
  interrupt(true, why, 0);
  for (Member* member : roster_.in(Stage::joined))
    refuse(*member, {Why::leaving, why, {}});
  end_job(End::failed, why);
}

}  // namespace lockstep::rendezvous::hub
