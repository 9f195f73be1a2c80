// Making a round: when, of which nodes, in which order.
#include "rendezvous/hub/coordinator.h"
#include "rendezvous/rank_exchange.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

namespace lockstep::rendezvous::hub {
namespace {

// Orders "10.0.0.9" before "10.0.0.10": runs of digits compare as numbers.
bool natural_less(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  while (!a.empty() && !b.empty()) {
    if (!digit(a.front()) || !digit(b.front())) {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    const auto number = [&](std::string_view& text) {
      // Without leading zeros a longer run of digits is a larger number.
      while (text.size() > 1 && text.front() == '0' && digit(text[1]))
        text.remove_prefix(1);
      const auto* const end = std::find_if_not(text.begin(), text.end(), digit);
      const std::string_view run = text.substr(0, static_cast<std::size_t>(end - text.begin()));
      text.remove_prefix(run.size());
      return run;
    };
    const std::string_view x = number(a);
    const std::string_view y = number(b);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  return a.size() < b.size();
}

}  // namespace

// Returns whether nodes of the interrupted round still have to join again.
bool Coordinator::awaits_rejoin() const {
  if (!current_) return false;
  // In an adopted round an idle node may belong to the round and still be stopping its workers.
  if (current_->adopted && roster_.count(Stage::idle) > 0) return true;
  return roster_.count(Stage::placed) + roster_.count(Stage::finished) + roster_.away() > 0;
}

// Takes the next step towards a round if one is due. Called after every event.
void Coordinator::consider(Time now) {
  if (over() || proposal_) return;
  const std::size_t joined = roster_.count(Stage::joined);
  if (!adoption_settled(now)) return;
  if (running()) {
    // Once a node has finished, the job is about to end. Do not restart all workers for a newcomer.
    const bool room = current_->size < settings_.max_nodes && roster_.count(Stage::finished) == 0 &&
                      current_->finished_and_gone.empty();
    if (joined == 0 || !room) return;
    interrupt(false, "new nodes want to take part: " + roster_.names({Stage::joined}, false), 0);
  }
  if (awaits_rejoin() || joined < settings_.min_nodes) {
    last_call_until_.reset();
    return;
  }
  // No last call after a round: its nodes have all been waited for already.
  if (current_ || joined >= settings_.max_nodes) return propose(now);
  if (settings_.takeover) {
    // Idle nodes have come over and will join once their workers are stopped.
    if (roster_.count(Stage::idle) > 0) return last_call_until_.reset();
    if (survivors_are_here()) return propose(now);
  }
  const Time until = now + last_call();
  // The first survivor shortens a last call that is already running.
  if (!last_call_until_ || until < *last_call_until_) last_call_until_ = until;
  if (now >= *last_call_until_) propose(now);
}

void Coordinator::propose(Time now) {
  last_call_until_.reset();
  const std::vector<Member*> chosen = choose();
  Proposal proposal;
  proposal.number = next_round_++;
  proposal.until = now + settings_.store_timeout;
  proposal.ranks.reserve(chosen.size());
  for (const Member* member : chosen)
    proposal.ranks.push_back(member->peer);
  outbox_.send(proposal.ranks.front(), StoreWanted{proposal.number});
  proposal_ = std::move(proposal);
}

// Returns the nodes of the next round by rank. Nodes keep their ranks; newcomers take free ranks,
// then further ones.
std::vector<Coordinator::Member*> Coordinator::choose() {
  if (seats_.empty()) seats_from_offers();
  std::map<Nonce, Member*> by_agent;
  std::vector<Member*> newcomers;
  for (Member* member : roster_.in(Stage::joined))
    by_agent[member->agent] = member;
  std::vector<Member*> seats;
  for (const Nonce& agent : seats_) {
    const auto at = by_agent.find(agent);
    seats.push_back(at == by_agent.end() ? nullptr : at->second);
    if (at != by_agent.end()) by_agent.erase(at);
  }
  newcomers.reserve(by_agent.size());
  for (const auto& [agent, member] : by_agent)
    newcomers.push_back(member);
  const auto taken = static_cast<std::size_t>(
      std::count_if(seats.begin(), seats.end(), [](const Member* m) { return m != nullptr; }));
  // Early newcomers have precedence. The host always gets a place, because all other nodes depend
  // on the host staying.
  std::sort(newcomers.begin(), newcomers.end(), [&](const Member* a, const Member* b) {
    return std::tuple(a->agent != settings_.host, a->arrival) <
           std::tuple(b->agent != settings_.host, b->arrival);
  });
  newcomers.resize(std::min(newcomers.size(), settings_.max_nodes - taken));
  sort_newcomers(newcomers);
  auto next = newcomers.begin();
  for (Member*& seat : seats) {
    if (seat == nullptr && next != newcomers.end()) seat = *next++;
  }
  seats.insert(seats.end(), next, newcomers.end());
  // Ranks whose node is gone and has no replacement close up.
  std::erase(seats, nullptr);
  // Explicit node ranks beat kept seats.
  if (settings_.order == RankOrder::node_rank) sort_newcomers(seats);
  return seats;
}

void Coordinator::sort_newcomers(std::vector<Member*>& members) const {
  const auto first = [&](const Member* m) {
    return settings_.order == RankOrder::host && m->agent == settings_.host;
  };
  const auto rank = [&](const Member* m) {
    const bool given = settings_.order == RankOrder::node_rank && m->offer.node_rank >= 0;
    return given ? m->offer.node_rank : INT32_MAX;
  };
  const bool by_rank = settings_.order == RankOrder::node_rank;
  std::stable_sort(members.begin(), members.end(), [&](const Member* a, const Member* b) {
    if (first(a) != first(b)) return first(a);
    if (by_rank) return rank(a) < rank(b);
    if (a->offer.address != b->offer.address)
      return natural_less(a->offer.address, b->offer.address);
    return natural_less(a->offer.host, b->offer.host);
  });
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
  seats_.clear();
  seats_.reserve(infos.size());
  current_ = Current();
  current_->number = proposal.number;
  current_->size = infos.size();
  current_->lowest_max_restarts = INT32_MAX;
  for (const PeerId peer : proposal.ranks) {
    const Join& join = roster_.at(peer).offer;
    current_->lowest_max_restarts = std::min(current_->lowest_max_restarts, join.max_restarts);
    current_->replacement = current_->replacement && join.replacement;
  }
  // Reports belong to one round. A report of an earlier round must not answer in this one.
  reports_ = ReportExchange();
  const std::vector<std::string> notes = differences(nodes);
  for (std::size_t i = 0; i < infos.size(); ++i) {
    Member& member = roster_.at(proposal.ranks[i]);
    roster_.set_rank(member, static_cast<int>(i));
    seats_.push_back(member.agent);
    roster_.set_stage(member, Stage::placed);
    outbox_.send(member.peer, Placed{{.number = proposal.number,
                                      .restarts = restarts_,
                                      .max_restarts = current_->lowest_max_restarts,
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
