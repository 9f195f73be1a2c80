// Making a round: when, of which nodes, in which order.
#include "rendezvous/hub/coordinator.h"
#include "rendezvous/rank_exchange.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::rendezvous::hub {

// Takes the next step towards a round if one is due. Called after every event.
void Coordinator::consider(Time now) {
  if (over() || proposal_) return;
  const std::size_t joined = roster_.count(Stage::joined);
  if (!adoption_settled(now)) return;
  if (running()) {
    // Once a node has finished, the job is about to end. Do not restart all workers for a newcomer.
    const bool room = current_->size() < settings_.max_nodes &&
                      roster_.count(Stage::finished) == 0 && current_->finished_and_gone().empty();
    if (joined == 0 || !room) return;
    interrupt(false, "new nodes want to take part: " + roster_.names({Stage::joined}, false), 0);
  }
  if ((current_ && current_->awaits_rejoin(roster_)) || joined < settings_.min_nodes) {
    last_call_until_.reset();
    return;
  }
  // No last call after a round: its nodes have all been waited for already.
  if (current_ || joined >= settings_.max_nodes) return propose(now);
  const Seats::Nodes nodes = roster_.joined();
  if (inheritance_.taken_over()) {
    // Idle nodes have come over and will join once their workers are stopped.
    if (roster_.count(Stage::idle) > 0) return last_call_until_.reset();
    if (Inheritance::survivors_are_here(nodes)) return propose(now);
  }
  const Time until = now + inheritance_.last_call(nodes);
  // The first survivor shortens a last call that is already running.
  if (!last_call_until_ || until < *last_call_until_) last_call_until_ = until;
  if (now >= *last_call_until_) propose(now);
}

void Coordinator::propose(Time now) {
  last_call_until_.reset();
  const Seats::Nodes joined = roster_.joined();
  if (seats_.empty()) inherit(joined);
  const Seats::Nodes chosen = seats_.fill(joined);
  Proposal proposal;
  proposal.number = next_round_++;
  proposal.until = now + settings_.store_timeout;
  proposal.ranks.reserve(chosen.size());
  for (const Member* member : chosen)
    proposal.ranks.push_back(member->peer);
  outbox_.send(proposal.ranks.front(), StoreWanted{proposal.number});
  proposal_ = std::move(proposal);
}

// Continues the previous coordinator's order of nodes and count of restarts, from the nodes' joins.
void Coordinator::inherit(const Seats::Nodes& joined) {
  const auto past = seats_.inherit(joined);
  // No node is left of the job that counted the restarts: this is a new job.
  restarts_ = past ? std::max(restarts_, past->restarts) : 0;
  // A round number must never be given twice.
  if (past) next_round_ = std::max(next_round_, past->round + 1);
}

void Coordinator::on_store(Member& member, const StoreOffer& offer, Time now) {
  // An answer for an abandoned round.
  if (!proposal_ || proposal_->number != offer.round || proposal_->store ||
      proposal_->ranks.front() != member.peer)
    return;
  if (!offer.error.empty() || offer.addr.empty()) {
    return give_up_round(fmt::format("{} is rank 0 and could not open the workers' store: {}",
                                     member.called(),
                                     offer.error.empty() ? "it has no address" : offer.error));
  }
  // In a fenced rendezvous the round must be recorded before any node may start workers.
  if (settings_.fenced) {
    proposal_->store = offer;
    return ask_permission();
  }
  place(offer);
  consider(now);
}

// Ends the job because no round can be made. Waiting nodes are refused rather than told that they
// were spares: they were to take part.
void Coordinator::give_up_round(const std::string& text) {
  proposal_.reset();
  for (Member* member : roster_.in(Stage::joined))
    refuse(*member, {Why::closed, text, {}});
  end_job(Outcome::failed, text);
}

void Coordinator::ask_permission() {
  PermitRequest request;
  request.round = proposal_->number;
  request.restarts = restarts_;
  for (std::size_t i = 0; i < proposal_->ranks.size(); ++i) {
    if (roster_.at(proposal_->ranks[i]).agent == settings_.host) request.lead = static_cast<int>(i);
  }
  permit_request_ = std::move(request);
}

void Coordinator::permit(std::int64_t round, Time now) {
  // Too late: the round was abandoned.
  if (!proposal_ || proposal_->number != round || !proposal_->store) return;
  const StoreOffer offer = *proposal_->store;
  place(offer);
  consider(now);
}

// Assigns ranks to the chosen nodes: the round runs.
void Coordinator::place(const StoreOffer& offer) {
  const Proposal proposal = std::move(*proposal_);
  proposal_.reset();
  std::vector<RoleInfo> infos;
  std::vector<NodeFacts> nodes;
  infos.reserve(proposal.ranks.size());
  for (const PeerId peer : proposal.ranks) {
    const Join& join = roster_.at(peer).offer;
    infos.push_back({join.role, 0, join.local_world_size});
    nodes.push_back(facts_of(join));
  }
  const auto made_ranks = assign_ranks(infos);
  if (!made_ranks) return give_up_round(made_ranks.error().message);
  const std::vector<AssignedRanks>& ranks = *made_ranks;
  roster_.clear_ranks();
  current_.emplace(proposal.number, infos.size());
  Seats::Nodes placed;
  for (const PeerId peer : proposal.ranks) {
    placed.push_back(&roster_.at(peer));
    current_->admit(placed.back()->offer);
  }
  seats_.assign(placed);
  // Reports belong to one round. A report of an earlier round must not answer in this one.
  reports_ = ReportExchange();
  const std::vector<std::string> notes = differences(nodes);
  for (std::size_t i = 0; i < infos.size(); ++i) {
    Member& member = roster_.at(proposal.ranks[i]);
    roster_.set_rank(member, static_cast<int>(i));
    roster_.set_stage(member, Stage::placed);
    outbox_.send(member.peer, Placed{{.number = proposal.number,
                                      .restarts = restarts_,
                                      .max_restarts = current_->max_restarts(),
                                      .group_rank = member.rank(),
                                      .group_world_size = static_cast<int>(infos.size()),
                                      .base_rank = static_cast<int>(ranks[i].base_rank),
                                      .world_size = static_cast<int>(ranks[i].world_size),
                                      .role_base_rank = static_cast<int>(ranks[i].role_base_rank),
                                      .role_world_size = static_cast<int>(ranks[i].role_world_size),
                                      .master_addr = offer.addr,
                                      .master_port = offer.port,
                                      .use_agent_store = true,
                                      .notes = notes}});
  }
}

}  // namespace lockstep::rendezvous::hub
