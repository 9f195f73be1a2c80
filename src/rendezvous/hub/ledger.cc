// The rules of recording: quorums, promises, and when a charter is valid.
#include "rendezvous/hub/ledger.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

namespace lockstep::rendezvous::hub {

bool is_quorum(const Voters& voters, const std::set<Nonce>& agents) {
  const auto here = static_cast<std::size_t>(
      std::count_if(voters.all.begin(), voters.all.end(),
                    [&](const Voter& voter) { return agents.contains(voter.agent); }));
  // An even split: only one half contains `first`, so two halves never both decide.
  if (here * 2 != voters.all.size()) return here * 2 > voters.all.size();
  return here > 0 && agents.contains(voters.first);
}

bool is_newer(const Charter& a, const Charter& b) {
  return std::tie(a.term, a.version) > std::tie(b.term, b.version);
}

std::uint64_t next_term(std::uint64_t after, const Nonce& agent) {
  // The low part of the term is the beginning of the agent's random id, so no two hubs ever lead in
  // the same term.
  constexpr int kBytes = 5;
  constexpr std::uint64_t kAgents = 1ULL << (8 * kBytes);
  std::uint64_t low = 0;
  for (int i = 0; i < kBytes; ++i)
    low = low << 8U | agent[static_cast<std::size_t>(i)];
  return (after / kAgents + 1) * kAgents + low;
}

std::uint32_t place_of(const Voters& voters, const Nonce& agent) {
  const auto at = std::find_if(voters.all.begin(), voters.all.end(),
                               [&](const Voter& voter) { return voter.agent == agent; });
  return at == voters.all.end() ? kNoPlace : at->place;
}

// --- every node's part ---

void Witness::forget() {
  promised_ = 0;
  charter_ = {};
}

Testimony Witness::testify(const Call& call) {
  promised_ = std::max(promised_, call.term);
  return testimony();
}

Frame Witness::take(const Charter& charter) {
  if (charter.term < promised_ || !is_newer(charter, charter_)) {
    // A repetition: the first answer may be lost.
    if (charter.term == charter_.term && charter.version == charter_.version)
      return Agreed{charter.term, charter.version};
    return testimony();
  }
  promised_ = charter.term;
  charter_ = charter;
  return Agreed{charter.term, charter.version};
}

// --- the hub's part ---

Ledger::Ledger(const Settings& settings)
    : settings_(settings),
      term_(next_term(settings.after, settings.host)),
      stage_(settings.takes_over ? Stage::gathering : Stage::leading) {}

void Ledger::arrive(PeerId peer, const Nonce& agent) {
  // An agent has one connection; words from the old one no longer count.
  std::erase_if(peers_, [&](const auto& entry) { return entry.second.agent == agent; });
  peers_changed_ = true;
  peers_[peer].agent = agent;
  output_.push_back({peer, Call{term_}});
}

void Ledger::take(PeerId peer, const Testimony& testimony) {
  const auto at = peers_.find(peer);
  if (at == peers_.end() || deposed_) return;
  at->second.testimony = testimony;
  peers_changed_ = true;
  // The job has begun without this hub: this hub's host was restarted and has forgotten everything.
  deposed_ = stage_ == Stage::leading && charter_.term == 0 && testimony.charter.term > 0;
  if (deposed_) return;
  if (testimony.promised > term_) raise_term(testimony.promised);
  const std::uint64_t version = charter_.version;
  proceed();
  // A node that comes back may have missed the charter, and searches for a hub until it has one. If
  // the voters are the same, no later charter may follow.
  if (!deposed_ && charter_.term == term_ && charter_.version == version)
    output_.push_back({peer, charter_});
}

void Ledger::take(PeerId peer, const Agreed& agreed) {
  const auto at = peers_.find(peer);
  if (at == peers_.end() || deposed_) return;
  at->second.agreed = agreed;
  proceed();
}

void Ledger::lose(PeerId peer) {
  if (peers_.erase(peer) == 0) return;
  peers_changed_ = true;
  if (!deposed_) proceed();
}

void Ledger::write(const PermitRequest& request) {
  wish_ = request;
  changed_ = true;
  permitted_.reset();  // it was for an earlier request
  proceed();
}

// Asks for a later term because a node has promised a term of another hub. That hub may never come
// to lead.
void Ledger::raise_term(std::uint64_t above) {
  term_ = next_term(above, settings_.host);
  // The nodes must promise the new term before this hub may write in it.
  if (stage_ == Stage::leading && charter_.term > 0) stage_ = Stage::renewing;
  in_flight_ = false;
  for (const auto& [peer, known] : peers_)
    output_.push_back({peer, Call{term_}});
}

std::set<Nonce> Ledger::promised() const {
  std::set<Nonce> agents;
  for (const auto& [peer, known] : peers_)
    if (known.testimony && known.testimony->promised == term_) agents.insert(known.agent);
  return agents;
}

std::set<Nonce> Ledger::agreed() const {
  std::set<Nonce> agents;
  for (const auto& [peer, known] : peers_)
    if (known.agreed.term == charter_.term && known.agreed.version == charter_.version)
      agents.insert(known.agent);
  return agents;
}

void Ledger::proceed() {
  if (stage_ != Stage::leading) gather();
  if (in_flight_) settle();
  if (stage_ == Stage::leading && !deposed_) draft();
}

// Finds the latest charter among the connected nodes. Has that charter recorded again in this hub's
// term, unchanged and with the voters named in it.
void Ledger::gather() {
  const Charter* latest = &charter_;
  for (const auto& [peer, known] : peers_)
    if (known.testimony && is_newer(known.testimony->charter, *latest))
      latest = &known.testimony->charter;
  if (latest != &charter_) {
    // Another hub has led since this one did.
    deposed_ = stage_ == Stage::renewing;
    if (deposed_) return;
    charter_ = *latest;
    in_flight_ = false;
  }
  if (in_flight_ || charter_.term == 0) return;
  // Promises of the old voters are needed: they alone know what the old hub may have recorded.
  const std::set<Nonce> here = promised();
  if (!is_quorum(charter_.now, here) || !is_quorum(charter_.before, here)) return;
  charter_.term = term_;
  ++charter_.version;
  send_charter();
}

void Ledger::send_charter() {
  in_flight_ = true;
  for (const auto& [peer, known] : peers_)
    output_.push_back({peer, charter_});
}

void Ledger::settle() {
  // Each of n nodes agrees to each charter, so spare most of them the sets below.
  const auto count = std::count_if(peers_.begin(), peers_.end(), [this](const auto& entry) {
    const Agreed& agreed = entry.second.agreed;
    return agreed.version == charter_.version && agreed.term == charter_.term;
  });
  if (static_cast<std::size_t>(count) * 2 < charter_.now.all.size()) return;
  const std::set<Nonce> here = agreed();
  if (!is_quorum(charter_.now, here) || !is_quorum(charter_.before, here)) return;
  in_flight_ = false;
  settled_ = charter_.now;
  // A later charter may change these, so keep what the previous hub left.
  if (stage_ == Stage::gathering) left_ = charter_;
  stage_ = Stage::leading;
  if (wish_ && !changed_) permitted_ = wish_->round;
}

// Returns the connected nodes as voters: the host first, then by place. `hosts` gets the places of
// new voters, if this hub makes the list.
Voters Ledger::voters_here(std::vector<codec::RdzvEndpoint>& hosts) const {
  Voters voters;
  voters.first = settings_.host;
  for (const auto& [peer, known] : peers_) {
    if (!known.testimony) continue;
    const auto listed = std::find(hosts.begin(), hosts.end(), known.testimony->hub);
    std::uint32_t place = known.testimony->place;
    if (settings_.lists_hosts)
      place = listed == hosts.end() ? kNoPlace : static_cast<std::uint32_t>(listed - hosts.begin());
    voters.all.push_back({known.agent, place});
  }
  const auto order = [&] {
    std::sort(voters.all.begin(), voters.all.end(), [&](const Voter& a, const Voter& b) {
      return std::tuple(a.agent != settings_.host, a.place, a.agent) <
             std::tuple(b.agent != settings_.host, b.place, b.agent);
    });
  };
  order();
  if (voters.all.size() > kMaxVoters) voters.all.resize(kMaxVoters);
  if (settings_.lists_hosts) {
    list_hosts(voters, hosts);
    order();
  }
  return voters;
}

// Gives each voter without a place one in the list, if the voter may host. A place that no
// voter of the last charters has is given again, so the list stays short.
void Ledger::list_hosts(Voters& voters, std::vector<codec::RdzvEndpoint>& hosts) const {
  std::set<std::uint32_t> taken;
  for (const Voters& known : {voters, charter_.now, charter_.before})
    for (const Voter& voter : known.all)
      taken.insert(voter.place);
  std::map<Nonce, codec::RdzvEndpoint> hubs;
  for (const auto& [peer, known] : peers_)
    if (known.testimony) hubs[known.agent] = known.testimony->hub;
  for (Voter& voter : voters.all) {
    const codec::RdzvEndpoint& hub = hubs[voter.agent];
    if (voter.place != kNoPlace || hub.host.empty()) continue;
    voter.place = 0;
    while (taken.contains(voter.place))
      ++voter.place;
    taken.insert(voter.place);
    if (voter.place >= hosts.size()) hosts.resize(voter.place + 1);
    hosts[voter.place] = hub;
  }
}

void Ledger::fill(Charter& charter) const {
  if (!wish_) return;
  charter.round = wish_->round;
  charter.restarts = wish_->restarts;
  charter.lead = wish_->lead;
  charter.finished = wish_->finished;
  charter.end = static_cast<Charter::End>(wish_->end);
  charter.why = wish_->why;
}

// Sends a charter with the latest request and the connected nodes as the new voters. Only one
// charter is in flight at a time. If the voters change meanwhile, a new charter replaces the one in
// flight, which may never be recorded.
void Ledger::draft() {
  // The job has not begun.
  if (!wish_ && !settled_) return;
  // Only other voters may replace the charter in flight.
  if (!std::exchange(peers_changed_, false) && in_flight_) return;
  Charter next = charter_;
  next.now = voters_here(next.hosts);
  fill(next);
  const bool other_voters = next.now.all != charter_.now.all;
  // Also record that the previous voters have agreed. From then on the new voters alone decide.
  const bool agreed_on = settled_ && charter_.before != *settled_;
  if (in_flight_ ? !other_voters : !changed_ && !other_voters && !agreed_on) return;
  // When the job begins, every connected node becomes a voter.
  if (!settled_) settled_ = next.now;
  next.before = *settled_;
  std::set<Nonce> here;
  for (const Voter& voter : next.now.all)
    here.insert(voter.agent);
  // Do not send a charter that the previous voters cannot approve.
  if (!is_quorum(next.before, here) || !here.contains(settings_.host)) return;
  next.term = term_;
  ++next.version;
  changed_ = false;
  charter_ = std::move(next);
  send_charter();
}

bool Ledger::has_quorum() const {
  if (charter_.term == 0) return stage_ == Stage::leading;
  std::set<Nonce> here;
  for (const auto& [peer, known] : peers_)
    here.insert(known.agent);
  return is_quorum(settled_.value_or(charter_.now), here);
}

bool Ledger::has_host() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [this](const auto& entry) { return entry.second.agent == settings_.host; });
}

std::string Ledger::count() const {
  const Voters& voters = settled_ ? *settled_ : charter_.now;
  const auto here = std::count_if(voters.all.begin(), voters.all.end(), [this](const Voter& voter) {
    return std::any_of(peers_.begin(), peers_.end(),
                       [&](const auto& entry) { return entry.second.agent == voter.agent; });
  });
  const bool nodes = std::none_of(voters.all.begin(), voters.all.end(),
                                  [](const Voter& voter) { return voter.place == kVoteOnly; });
  return fmt::format("{} of {} {}", here, voters.all.size(), nodes ? "nodes" : "votes");
}

}  // namespace lockstep::rendezvous::hub
