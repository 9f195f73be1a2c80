// Sums up a state of the model, to know equal states, and checks what must hold in each state.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "succession_walk_testing.h"

namespace lockstep::rendezvous::hub {

void Sum::add_voters(const Voters& voters) {
  add(voters.first[0], voters.all.size());
  for (const Voter& voter : voters.all)
    add(voter.agent[0], voter.place);
}

void Sum::add_charter(const Charter& charter) {
  add(charter.term, charter.version, charter.round, charter.restarts,
      static_cast<int>(charter.end));
  add_voters(charter.now);
  add_voters(charter.before);
}

// Terms and versions of a ledger only grow. An answer to an earlier call or charter is never read.
void LedgerPeek::add_answer(Sum& sum, const Ledger& ledger, const Testimony& testimony) {
  sum.add(testimony.promised < ledger.term_ ? 0 : testimony.promised);
  const bool is_news = is_newer(testimony.charter, ledger.charter_);
  sum.add(is_news);
  if (is_news) sum.add_charter(testimony.charter);
}

void LedgerPeek::add_answer(Sum& sum, const Ledger& ledger, const Agreed& agreed) {
  sum.add(agreed.term == ledger.charter_.term && agreed.version == ledger.charter_.version);
}

void LedgerPeek::add(Sum& sum, const Ledger& ledger) {
  const bool leads = ledger.stage_ == Ledger::Stage::leading;
  sum.add(ledger.term_, static_cast<int>(ledger.stage_), ledger.deposed_, ledger.in_flight_,
          ledger.changed_, ledger.settled_.has_value(), ledger.wish_.has_value(),
          ledger.peers_.size());
  // draft() looks at this only while a charter is in flight.
  sum.add(ledger.peers_changed_ && ledger.in_flight_ && leads);
  for (const auto& [id, peer] : ledger.peers_) {
    sum.add(id, peer.testimony.has_value());
    add_answer(sum, ledger, peer.agreed);
    if (peer.testimony) add_answer(sum, ledger, *peer.testimony);
  }
  sum.add_charter(ledger.charter_);
  if (ledger.settled_) sum.add_voters(*ledger.settled_);
  if (ledger.wish_)
    sum.add(ledger.wish_->round, ledger.wish_->restarts, static_cast<int>(ledger.wish_->end));
}

bool LedgerPeek::may_decide(const Ledger& ledger, const std::set<Nonce>& supporters) {
  // A hub that renews its term first reads the charters of a quorum, and may find a later charter.
  return ledger.stage_ == Ledger::Stage::leading && !ledger.deposed_ && ledger.settled_ &&
         is_quorum(*ledger.settled_, supporters);
}

namespace testing {

std::uint64_t WalkState::budget() const {
  std::uint64_t all = 0;
  for (const int left : {left_.crashes, left_.cuts, left_.writes, left_.openings, left_.steps})
    all = all << 8U | static_cast<std::uint64_t>(left);
  return all;
}

std::uint64_t WalkState::sum() const {
  Sum sum;
  sum.add(ended_, last_permitted_, is_cut_, static_cast<int>(news_));
  if (news_ == News::death) sum.add(dead_);
  for (std::size_t i = 0; i < size(); ++i)
    sum.add(cut_[i], news_ == News::heal ? healed_[i] : 0);
  for (const int by : permitted_)
    sum.add(by >= 0);
  for (int i = 0; i < left_.nodes; ++i)
    add_node(sum, i);
  for (const auto& hub : hubs_) {
    sum.add(hub.has_value());
    if (!hub) continue;
    sum.add(hub->led, hub->round, hub->wish, hub->over);
    LedgerPeek::add(sum, hub->ledger);
  }
  for (int node = 0; node < left_.nodes; ++node)
    for (int hub = 0; hub < left_.nodes; ++hub)
      add_link(sum, node, hub);
  return sum.value();
}

void WalkState::add_node(Sum& sum, int number) const {
  const Node& node = nodes_[at(number)];
  sum.add(node.alive);
  if (!node.alive) return;
  sum.add(node.linked, node.hub, node.searching, node.leader, node.witness.promised());
  sum.add_charter(node.witness.charter());
  if (!node.searching) return;
  sum.add(node.closed && !only_votes(number), node.stops.size() - node.next);
  for (std::size_t i = node.next; i < node.stops.size(); ++i)
    sum.add(node.stops[i].place, node.stops[i].own);
}

// A dead node reads nothing, and a closed end neither.
void WalkState::add_link(Sum& sum, int number, int hub) const {
  const Link& link = this->link(number, hub);
  sum.add(link.node_up, link.hub_up);
  if (link.node_up && nodes_[at(number)].alive) {
    sum.add(link.down.size());
    for (const Mail& mail : link.down) {
      sum.add(mail ? mail->index() : 0U, mail != nullptr);
      if (!mail) continue;
      // A witness answers any call of an older term alike.
      if (const auto* call = std::get_if<Call>(mail.get()))
        sum.add(std::max(call->term, nodes_[at(number)].witness.promised()));
      if (const auto* charter = std::get_if<Charter>(mail.get())) sum.add_charter(*charter);
    }
  }
  if (!link.hub_up || !hubs_[at(hub)]) return;
  sum.add(link.up.size());
  const Ledger& ledger = hubs_[at(hub)]->ledger;
  for (const Mail& mail : link.up) {
    sum.add(mail ? mail->index() : 0U, mail != nullptr);
    if (!mail) continue;
    if (const auto* testimony = std::get_if<Testimony>(mail.get()))
      LedgerPeek::add_answer(sum, ledger, *testimony);
    if (const auto* agreed = std::get_if<Agreed>(mail.get()))
      LedgerPeek::add_answer(sum, ledger, *agreed);
  }
}

// Two hubs may believe to lead. Only one may find a quorum that still follows its term.
void WalkState::check() {
  int leaders = 0;
  for (const auto& hub : hubs_) {
    if (!hub) continue;
    std::set<Nonce> followers;
    for (std::size_t i = 0; i < size(); ++i)
      if (nodes_[i].alive && nodes_[i].witness.promised() <= LedgerPeek::term(hub->ledger))
        followers.insert(Nonce{static_cast<std::uint8_t>(i + 1)});
    if (LedgerPeek::may_decide(hub->ledger, followers)) ++leaders;
  }
  if (leaders > 1) wrong("two leaders could each permit a round");
}

// Lets all happen that needs no patience. Returns whether anything has happened.
bool WalkState::deliver() {
  bool any = false;
  for (int i = 0; i < left_.nodes; ++i) {
    std::vector<Event> events;
    if (nodes_[at(i)].alive) add_node_events(events, i);
    if (hubs_[at(i)]) add_hub_events(events, i);
    std::erase_if(events, [this](const Event& event) {
      return event.kind == Kind::step || event.kind == Kind::step_down ||
             event.kind == Kind::write_round || event.kind == Kind::write_end ||
             (late_ && event.kind == Kind::node_misses);
    });
    if (events.empty()) continue;
    apply(events.front());
    any = true;
  }
  return any;
}

// Lets `ms` pass.
void WalkState::wait(int ms) {
  for (int i = 0; i < left_.nodes; ++i) {
    auto& hub = hubs_[at(i)];
    if (hub) hub->lacks_quorum = hub->led && !hub->ledger.has_quorum() ? hub->lacks_quorum + ms : 0;
    if (hub && hub->lacks_quorum > 1'000) close_hub(i);
    Node& node = nodes_[at(i)];
    if (!node.alive || !node.searching || (node.due -= ms) > 0) continue;
    // A hub that has let the node in may still come to lead.
    const bool inside = node.linked && node.hub != i;
    if (inside && (!std::exchange(node.waited, true) || node.at_first)) {
      node.due = 3'000;
    } else {
      step(i);
    }
  }
}

// Returns whether the living nodes are a quorum of the latest voters, and one of these voters knows
// that. Otherwise none may lead, or none opens a hub.
bool WalkState::living_may_decide() const {
  std::set<Nonce> living;
  const Charter* last = nullptr;
  for (int i = 0; i < left_.nodes; ++i) {
    const Charter& charter = nodes_[at(i)].witness.charter();
    if (!nodes_[at(i)].alive) continue;
    living.insert(Nonce{static_cast<std::uint8_t>(i + 1)});
    if (last == nullptr || is_newer(charter, *last)) last = &charter;
  }
  if (last == nullptr || !is_quorum(last->now, living) || !is_quorum(last->before, living))
    return false;
  return std::any_of(last->now.all.begin(), last->now.all.end(), [&](const Voter& voter) {
    const Node& node = nodes_[at(static_cast<int>(voter.place))];
    return node.alive && !is_newer(*last, node.witness.charter());
  });
}

// Delivers all messages.
void WalkState::drain() {
  constexpr int kMost = 5'000;
  int turns = 0;
  while (turns < kMost && deliver())
    ++turns;
  if (turns == kMost) wrong("the messages never end");
}

std::string WalkState::settle(std::uint64_t luck) {
  constexpr int kTick = 100;
  constexpr int kPatience = 28'000;  // succession_timeout, less the time to notice the loss
  is_cut_ = false;
  cut_ = {};
  left_.crashes = left_.cuts = 0;
  luck_ = luck;
  for (int i = 0; i < left_.nodes; ++i) {
    Node& node = nodes_[at(i)];
    if (!node.stops.empty() && node.next > 0)
      node.due = static_cast<int>(node.stops[node.next - 1].patience.count() *
                                  ((luck >> (8 * i)) & 7U) / 8);
  }
  for (int ms = 0; ms < kPatience && fault_.empty(); ms += kTick) {
    drain();
    wait(kTick);
  }
  if (!fault_.empty()) return fault_;
  if (!living_may_decide()) return {};
  for (int i = 0; i < left_.nodes; ++i) {
    auto& hub = hubs_[at(i)];
    if (!leads(i)) continue;
    if (hub->over) return {};
    write(i, false);
    drain();
    check();
    if (!fault_.empty()) return fault_;
    if (hub && hub->round == last_permitted_ && hub->wish < 0) return {};
    return fmt::format("the leader {} cannot record a round", i);
  }
  return "nobody leads: " + text();
}

bool WalkState::leads(int hub) const {
  return hubs_[at(hub)] && hubs_[at(hub)]->led && hubs_[at(hub)]->ledger.has_quorum();
}

int WalkState::meet(std::uint64_t luck, const std::vector<int>& notices, int most) {
  constexpr int kTick = 50;
  luck_ = luck;
  late_ = true;
  die(0, false);
  for (int ms = 0; ms < most; ms += kTick) {
    for (int i = 1; i < left_.nodes; ++i)
      if (nodes_[at(i)].hub == 0 && !nodes_[at(i)].searching && ms >= notices[at(i)])
        lost(i, false);
    drain();
    for (int i = 1; i < left_.nodes; ++i)
      if (leads(i)) return ms;
    wait(kTick);
  }
  return most;
}

// Returns the nodes and hubs in words, for a trace.
std::string WalkState::text() const {
  std::string text;
  for (int i = 0; i < left_.nodes; ++i) {
    const Node& node = nodes_[at(i)];
    const Charter& charter = node.witness.charter();
    text += fmt::format("[{}:{}{}{} at {} promised {:x} has {:x}.{} round {}", i,
                        node.alive ? "" : " dead", node.searching ? " searching" : "",
                        node.linked ? " linked" : "", node.hub, node.witness.promised(),
                        charter.term, charter.version, charter.round);
    if (const auto& hub = hubs_[at(i)])
      text += fmt::format(" hub {:x}{} {}", LedgerPeek::term(hub->ledger), hub->led ? " leads" : "",
                          hub->ledger.count());
    text += "] ";
  }
  return text;
}

std::string WalkState::text(const Event& event) {
  constexpr std::array kNames{"to_node",    "to_hub",    "connect",     "step",      "node_misses",
                              "hub_misses", "step_down", "write_round", "write_end", "kill",
                              "power_cut",  "cut",       "heal"};
  return fmt::format("{} {} {}", kNames.at(static_cast<std::size_t>(event.kind)), event.a, event.b);
}

}  // namespace testing
}  // namespace lockstep::rendezvous::hub
