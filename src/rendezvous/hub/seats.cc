#include "rendezvous/hub/seats.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

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

std::optional<int> Seats::rank_of(const Nonce& agent) const {
  const auto at = std::find(agents_.begin(), agents_.end(), agent);
  if (at == agents_.end()) return {};
  return static_cast<int>(at - agents_.begin());
}

const Nonce* Seats::agent_at(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  return rank >= 0 && at < agents_.size() && agents_[at] != Nonce{} ? &agents_[at] : nullptr;
}

std::vector<int> Seats::vacant() const {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < agents_.size(); ++i)
    if (agents_[i] == Nonce{}) ranks.push_back(static_cast<int>(i));
  return ranks;
}

void Seats::assign(const Nodes& by_rank) {
  agents_.clear();
  agents_.reserve(by_rank.size());
  for (const auto* node : by_rank)
    agents_.push_back(node->agent);
}

bool Seats::take(int rank, const Nonce& agent) {
  const auto seat = static_cast<std::size_t>(rank);
  if (rank < 0 || seat >= agents_.size()) return false;
  // Only a free seat, or the seat of the same agent.
  if (agents_[seat] != Nonce{} && agents_[seat] != agent) return false;
  agents_[seat] = agent;
  return true;
}

std::optional<Seats::Past> Seats::inherit(const Nodes& joined) {
  Past past;
  for (const auto* node : joined)
    past.round = std::max(past.round, node->offer.last_round);
  if (past.round < 0) return {};
  std::vector<std::pair<int, Nonce>> known;
  for (const auto* node : joined) {
    if (node->offer.last_round != past.round) continue;
    known.emplace_back(node->offer.last_rank, node->agent);
    past.restarts = std::max(past.restarts, node->offer.restarts);
  }
  std::sort(known.begin(), known.end());
  // The ranks are only claims of nodes, so bound the number.
  known.resize(std::min(known.size(), max_nodes_));
  agents_.reserve(known.size());
  for (const auto& [rank, agent] : known)
    agents_.push_back(agent);
  return past;
}

// Returns the nodes that may have a place. A node that gives way is left out while enough other
// nodes are there. The host never gives way, because all nodes depend on the host.
std::map<Nonce, const Roster::Member*> Seats::candidates(const Nodes& joined) const {
  std::map<Nonce, const Roster::Member*> by_agent;
  std::size_t spares = joined.size() - std::min(joined.size(), max_nodes_);
  for (const auto* node : joined) {
    const bool yields = node->offer.gives_way && node->agent != host_;
    if (yields && spares > 0)
      --spares;
    else
      by_agent[node->agent] = node;
  }
  return by_agent;
}

Seats::Nodes Seats::fill(const Nodes& joined) const {
  auto by_agent = candidates(joined);
  Nodes seats;
  for (const Nonce& agent : agents_) {
    const auto at = by_agent.find(agent);
    seats.push_back(at == by_agent.end() ? nullptr : at->second);
    if (at != by_agent.end()) by_agent.erase(at);
  }
  Nodes newcomers;
  newcomers.reserve(by_agent.size());
  for (const auto& [agent, node] : by_agent)
    newcomers.push_back(node);
  const auto taken = static_cast<std::size_t>(
      std::count_if(seats.begin(), seats.end(), [](const auto* node) { return node != nullptr; }));
  // Early newcomers have precedence. The host always gets a place, because all other nodes depend
  // on the host staying.
  std::sort(newcomers.begin(), newcomers.end(), [&](const auto* a, const auto* b) {
    return std::tuple(a->agent != host_, a->arrival) < std::tuple(b->agent != host_, b->arrival);
  });
  newcomers.resize(std::min(newcomers.size(), max_nodes_ - taken));
  sort_by_rule(newcomers);
  auto next = newcomers.begin();
  for (auto& seat : seats) {
    if (seat == nullptr && next != newcomers.end()) seat = *next++;
  }
  seats.insert(seats.end(), next, newcomers.end());
  // Ranks whose node is gone and has no replacement close up.
  std::erase(seats, nullptr);
  // Explicit node ranks beat kept seats.
  if (order_ == RankOrder::node_rank) sort_by_rule(seats);
  return seats;
}

void Seats::sort_by_rule(Nodes& nodes) const {
  const bool by_rank = order_ == RankOrder::node_rank;
  const auto first = [&](const auto* node) {
    return order_ == RankOrder::host && node->agent == host_;
  };
  const auto rank = [](const auto* node) {
    return node->offer.node_rank >= 0 ? node->offer.node_rank : INT32_MAX;
  };
  std::stable_sort(nodes.begin(), nodes.end(), [&](const auto* a, const auto* b) {
    if (first(a) != first(b)) return first(a);
    if (by_rank) return rank(a) < rank(b);
    if (a->offer.address != b->offer.address)
      return natural_less(a->offer.address, b->offer.address);
    return natural_less(a->offer.host, b->offer.host);
  });
}

}  // namespace lockstep::rendezvous::hub
