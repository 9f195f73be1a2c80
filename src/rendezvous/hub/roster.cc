#include "rendezvous/hub/roster.h"

#include "base/text.h"
#include "base/word_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

namespace lockstep::rendezvous::hub {
namespace {
constexpr std::size_t kMostNames = 8;  // in one message
}  // namespace

Roster::Member& Roster::add(PeerId peer, const Nonce& agent, const std::string& name, Ms heard) {
  Member& member = members_[peer];
  peer_of_[agent] = peer;
  member.peer = peer;
  member.agent = agent;
  member.name = name;
  member.arrival = ++arrivals_;
  member.heard = heard;
  ++counts_[static_cast<std::size_t>(Stage::idle)];
  away_.erase(agent);
  return member;
}

Roster::Member& Roster::move(PeerId from, PeerId to, Ms heard) {
  auto entry = members_.extract(from);
  entry.key() = to;
  Member& member = members_.insert(std::move(entry)).position->second;
  member.peer = to;
  member.heard = heard;
  peer_of_[member.agent] = to;
  return member;
}

std::optional<Roster::Member> Roster::remove(PeerId peer) {
  const auto at = members_.find(peer);
  if (at == members_.end()) return {};
  Member gone = std::move(at->second);
  members_.erase(at);
  peer_of_.erase(gone.agent);
  --counts_[static_cast<std::size_t>(gone.stage_)];
  if (gone.rank_ >= 0) --ranked_;
  return gone;
}

void Roster::set_stage(Member& member, Stage stage) {
  --counts_[static_cast<std::size_t>(member.stage_)];
  ++counts_[static_cast<std::size_t>(stage)];
  member.stage_ = stage;
}

void Roster::set_rank(Member& member, int rank) {
  if (member.rank_ >= 0) --ranked_;
  if (rank >= 0) ++ranked_;
  member.rank_ = rank;
}

void Roster::clear_ranks() {
  for (auto& [peer, member] : members_)
    member.rank_ = -1;
  ranked_ = 0;
}

void Roster::hear(PeerId peer, Ms heard) {
  if (Member* member = find(peer)) member->heard = heard;
}

// --- lookups ---

Roster::Member* Roster::find(PeerId peer) {
  const auto at = members_.find(peer);
  return at == members_.end() ? nullptr : &at->second;
}

Roster::Member* Roster::of(const Nonce& agent) {
  const auto at = peer_of_.find(agent);
  return at == peer_of_.end() ? nullptr : find(at->second);
}

std::vector<Roster::Member*> Roster::in(Stage stage) {
  std::vector<Member*> found;
  for (auto& [peer, member] : members_)
    if (member.stage_ == stage) found.push_back(&member);
  return found;
}

std::vector<const Roster::Member*> Roster::joined() const {
  std::vector<const Member*> found;
  for (const auto& [peer, member] : members_)
    if (member.stage_ == Stage::joined) found.push_back(&member);
  return found;
}

const Roster::Member* Roster::with_node_rank(int node_rank, const Member& except) const {
  if (node_rank < 0) return nullptr;
  for (const auto& [peer, other] : members_) {
    if (&other != &except && other.stage_ != Stage::idle && other.offer.node_rank == node_rank)
      return &other;
  }
  return nullptr;
}

std::vector<PeerId> Roster::silent(Ms now, Ms dead) const {
  std::vector<PeerId> found;
  for (const auto& [peer, member] : members_)
    if (now - member.heard >= dead) found.push_back(peer);
  return found;
}

// --- nodes that have lost their connection ---

void Roster::expect_back(const Member& member, Time until) {
  away_[member.agent] = {member.called(), until};
}

std::optional<std::string> Roster::take_overdue(Time now) {
  const auto at = std::find_if(away_.begin(), away_.end(),
                               [&](const auto& entry) { return now >= entry.second.until; });
  if (at == away_.end()) return {};
  std::string name = std::move(at->second.name);
  away_.erase(at);
  return name;
}

std::vector<std::string> Roster::away_names() const {
  std::vector<std::string> names;
  names.reserve(away_.size());
  for (const auto& [agent, away] : away_)
    names.push_back(away.name);
  return names;
}

// --- words ---

std::string Roster::names(std::initializer_list<Stage> stages, bool of_round) const {
  std::vector<std::string> some;
  std::size_t all = 0;
  for (const auto& [peer, member] : members_) {
    if (std::find(stages.begin(), stages.end(), member.stage_) == stages.end() ||
        (of_round && member.rank_ < 0))
      continue;
    if (++all <= kMostNames) some.push_back(member.called());
  }
  std::string text = join(some, ", ");
  if (all > kMostNames) text += fmt::format(" and {} more", all - kMostNames);
  return text;
}

std::string Roster::absent(const std::vector<std::string>& expected, std::size_t count) const {
  // Compare up to the first dot: one side may use full names, the other short ones.
  const auto label = [](const std::string& name) { return name.substr(0, name.find('.')); };
  std::set<std::string> here;
  for (const Member* member : joined())
    here.insert(label(member->offer.host));
  std::vector<std::string> missing;
  for (const std::string& name : expected) {
    if (!here.contains(label(name))) missing.push_back(name);
  }
  // Names that do not match would accuse the wrong nodes, so say nothing.
  if (missing.size() != count) return {};
  return fmt::format(" ({})", join_some(missing, kMostNames));
}

}  // namespace lockstep::rendezvous::hub
