// The events of the model and what they do; succession_walk_oracle_testing.cc judges the states.
#include "succession_walk_testing.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace lockstep::rendezvous::hub::testing {
namespace {

Nonce agent_of(int number) {
  Nonce nonce{};
  nonce[0] = static_cast<std::uint8_t>(number + 1);
  return nonce;
}
// A node has one connection to a hub at most. A ledger forgets the old one when the node comes
// again, so the number need not change.
PeerId peer_of(int node) {
  return static_cast<PeerId>(node) + 1;
}
int node_of(PeerId peer) {
  return static_cast<int>(peer) - 1;
}

}  // namespace

WalkState::WalkState(const WalkBounds& bounds) : left_(bounds) {
  const int count = bounds.nodes;
  for (int i = 0; i < count; ++i)
    nodes_.push_back({.witness = Witness(place(i))});
  hubs_.resize(at(count));
  links_.resize(at(count) * at(count));
  open_hub(0, false);
  for (int i = 0; i < count; ++i)
    connect(i);
  if (!bounds.begun) return;
  drain();
  ++left_.writes;
  write(0, false);
  drain();
}

// --- which events may happen ---

std::vector<WalkState::Event> WalkState::events() const {
  if (const auto first = prompt()) return {*first};
  std::vector<Event> events;
  for (int i = 0; i < left_.nodes; ++i) {
    if (nodes_[at(i)].alive) add_node_events(events, i);
    if (hubs_[at(i)]) add_hub_events(events, i);
  }
  if (news_ != News::none) {
    std::erase_if(events, [this](const Event& event) { return !needs_fault(event); });
    // The end of a dead node's connection may arrive after the network has healed.
    if (news_ == News::death && is_cut_) events.push_back({Kind::heal});
    return events;
  }
  add_faults(events);
  return events;
}

// Returns whether the event could not happen without the last fault. Whatever else happens between
// a fault and the first such event could as well happen before the fault: between the two the
// dead node does nothing, and a message that the cut holds back may take as long anyway. So the
// walk needs no other order (partial-order reduction).
bool WalkState::needs_fault(const Event& event) const {
  const auto was_cut = [&](int from, int to) { return ((healed_[at(from)] >> to) & 1U) != 0; };
  const bool by_death = news_ == News::death;
  const bool by_heal = news_ == News::heal;
  switch (event.kind) {
    case Kind::to_node: {
      const int hub = nodes_[at(event.a)].hub;
      const bool told = by_death && hub == dead_ && !link(event.a, hub).down.front();
      return told || (by_heal && was_cut(hub, event.a));
    }
    case Kind::to_hub: {
      const bool told = by_death && event.b == dead_ && !link(event.b, event.a).up.front();
      return told || (by_heal && was_cut(event.b, event.a));
    }
    case Kind::connect: {
      const int hub = nodes_[at(event.a)].hub;
      return by_heal && (was_cut(hub, event.a) || was_cut(event.a, hub));
    }
    case Kind::node_misses:
      return !by_heal && (!by_death || nodes_[at(event.a)].hub == dead_);
    case Kind::hub_misses:
      return !by_heal && (!by_death || event.b == dead_);
    default:
      return false;
  }
}

// Returns an event that needs no other order. Messages between a node and its own hub are prompt:
// the model has no other order. For other messages this is a partial-order reduction. A message to
// a node changes nothing that other events read. Only a death, a cut of this link, a miss or the
// node's search may come between the message and its node. If none of them can happen any more, the
// order of the message beside other events makes no difference, the end of a cut included. check()
// reads the node's promise, so it sees only states in which such messages have arrived.
std::optional<WalkState::Event> WalkState::prompt() const {
  const bool no_faults = left_.crashes == 0 && left_.cuts == 0 && news_ == News::none;
  const bool quiet = left_.prompt && no_faults;
  for (int i = 0; i < left_.nodes; ++i) {
    const Node& node = nodes_[at(i)];
    if (!node.alive) continue;
    const Link& own = link(i, i);
    if (hubs_[at(i)] && own.hub_up && !own.up.empty()) return Event{Kind::to_hub, i, i};
    if (!node.linked) continue;
    const Link& to = link(i, node.hub);
    if (to.down.empty()) continue;
    if (node.hub == i) return Event{Kind::to_node, i};
    const bool stays = !node.searching || left_.steps == 0;
    const bool sure = nodes_[at(node.hub)].alive && reaches(i, node.hub);
    if (quiet && stays && sure && to.down.front()) return Event{Kind::to_node, i};
  }
  return {};
}

void WalkState::add_node_events(std::vector<Event>& events, int number) const {
  const Node& node = nodes_[at(number)];
  const Link& to = link(number, node.hub);
  const bool deaf = blocked(node.hub, number);
  if (node.linked && !to.down.empty() && !deaf) events.push_back({Kind::to_node, number});
  // A hub falls silent with its machine or its network.
  if (node.linked && (deaf || (!nodes_[at(node.hub)].alive && to.hub_up)))
    events.push_back({Kind::node_misses, number});
  if (!node.linked && hubs_[at(node.hub)] && reaches(number, node.hub))
    events.push_back({Kind::connect, number});
  if (node.searching && left_.steps > 0) {
    // The next stop may be a hub of its own.
    if (left_.openings > 0 || node.next >= node.stops.size() || !node.stops[node.next].own)
      events.push_back({Kind::step, number});
  }
}

void WalkState::add_hub_events(std::vector<Event>& events, int number) const {
  const Hub& hub = *hubs_[at(number)];
  for (int i = 0; i < left_.nodes; ++i) {
    const Link& from = link(i, number);
    if (!from.hub_up) continue;
    const bool mute = blocked(i, number);
    if (!from.up.empty() && !mute) events.push_back({Kind::to_hub, number, i});
    if (mute || (!nodes_[at(i)].alive && from.node_up))
      events.push_back({Kind::hub_misses, number, i});
  }
  if (!hub.led) return;
  if (!hub.ledger.has_quorum() && !hub.over) events.push_back({Kind::step_down, number});
  if (left_.writes == 0 || hub.over || hub.wish >= 0) return;
  events.push_back({Kind::write_round, number});
  if (hub.round >= 0) events.push_back({Kind::write_end, number});
}

void WalkState::add_faults(std::vector<Event>& events) const {
  const int count = left_.nodes;
  for (int i = 0; i < count && left_.crashes > 0; ++i) {
    if (!nodes_[at(i)].alive) continue;
    events.push_back({Kind::kill, i});
    events.push_back({Kind::power_cut, i});
  }
  if (is_cut_) events.push_back({Kind::heal});
  // Set by set: both directions (the set without the last node is enough), then each alone.
  for (int set = 1; set < (1 << count) - 1 && left_.cuts > 0; ++set) {
    if (set < 1 << (count - 1)) events.push_back({Kind::cut, set, 3});
    events.push_back({Kind::cut, set, 1});
  }
  if (!left_.single_links || left_.cuts == 0) return;
  for (int a = 0; a < count; ++a)
    for (int b = 0; b < count; ++b)
      if (a != b) {
        events.push_back({Kind::cut, a * 8 + b, 4});
        if (a < b) events.push_back({Kind::cut, a * 8 + b, 5});
      }
}

// --- what they do ---

void WalkState::apply(const Event& event) {
  news_ = News::none;
  Link* const link_of = event.kind == Kind::hub_misses ? &link(event.b, event.a) : nullptr;
  switch (event.kind) {
    case Kind::to_node:
      return to_node(event.a);
    case Kind::to_hub:
      return to_hub(event.a, event.b);
    case Kind::connect:
      return connect(event.a);
    case Kind::step:
      --left_.steps;
      return step(event.a);
    case Kind::node_misses:
      return lost(event.a, false);
    case Kind::hub_misses:
      link_of->hub_up = false;
      link_of->up.clear();
      link_of->down.push_back(nullptr);
      hubs_[at(event.a)]->ledger.lose(peer_of(event.b));
      return pump(event.a);
    case Kind::step_down:
      return close_hub(event.a);
    case Kind::write_round:
    case Kind::write_end:
      return write(event.a, event.kind == Kind::write_end);
    case Kind::kill:
    case Kind::power_cut:
      --left_.crashes;
      return die(event.a, event.kind == Kind::kill);
    case Kind::cut:
      --left_.cuts;
      return cut(event.a, event.b);
    case Kind::heal:
      news_ = News::heal;
      healed_ = std::exchange(cut_, {});
      is_cut_ = false;
      return;
  }
}

// Acts like the member: the witness answers, and a recorded charter ends the search.
void WalkState::to_node(int number) {
  Node& node = nodes_[at(number)];
  Link& from = link(number, node.hub);
  const Mail mail = std::move(from.down.front());
  from.down.erase(from.down.begin());
  if (mail == nullptr) return lost(number, true);
  Frame answer;
  if (const auto* call = std::get_if<Call>(mail.get())) {
    answer = node.witness.testify(*call);
  } else {
    const auto& charter = std::get<Charter>(*mail);
    const bool is_refused = must_refuse(node.witness, charter);
    answer = node.witness.take(charter);
    if (std::holds_alternative<Agreed>(answer)) {
      if (is_refused) wrong("a node agrees to a term below its promise");
      if (node.searching) led_again_ = true;
      node.searching = false;
      node.leader = static_cast<std::uint32_t>(node.hub);
      node.stops.clear();
      node.next = 0;
    }
  }
  if (from.hub_up) from.up.push_back(std::make_shared<Frame>(std::move(answer)));
}

void WalkState::to_hub(int number, int from) {
  Link& of = link(from, number);
  Ledger& ledger = hubs_[at(number)]->ledger;
  const Mail mail = std::move(of.up.front());
  of.up.erase(of.up.begin());
  if (mail == nullptr) {
    of.hub_up = false;
    ledger.lose(peer_of(from));
  } else if (const auto* testimony = std::get_if<Testimony>(mail.get())) {
    ledger.take(peer_of(from), *testimony);
  } else {
    ledger.take(peer_of(from), std::get<Agreed>(*mail));
  }
  pump(number);
}

void WalkState::connect(int number) {
  Node& node = nodes_[at(number)];
  Link& to = link(number, node.hub);
  to = Link{.node_up = true, .hub_up = true, .down = {}, .up = {}};
  node.linked = true;
  hubs_[at(node.hub)]->ledger.arrive(peer_of(number), agent_of(number));
  pump(node.hub);
}

// The node's end of its connection goes. Frames on the way to the hub may still arrive.
void WalkState::hang_up(int number) {
  Node& node = nodes_[at(number)];
  if (!std::exchange(node.linked, false)) return;
  Link& to = link(number, node.hub);
  to.node_up = false;
  to.down.clear();
  if (to.hub_up) to.up.push_back(nullptr);
}

// Acts like HubSuccession::lost().
void WalkState::lost(int number, bool closed) {
  Node& node = nodes_[at(number)];
  hang_up(number);
  if (node.searching) return step(number);
  node.searching = true;
  node.closed = closed;
  node.stops.clear();
  node.next = 0;
  step(number);
}

// Acts like HubSuccession::step().
void WalkState::step(int number) {
  Node& node = nodes_[at(number)];
  if (node.next >= node.stops.size() && only_votes(number)) {
    // Acts like RemoteVote::dial().
    const std::uint32_t last = node.leader;
    node.stops = {{1 - last, false, std::chrono::milliseconds(800)},
                  {last, false, std::chrono::milliseconds(200)}};
    node.next = 0;
  } else if (node.next >= node.stops.size()) {
    node.stops = walk_line({.own = static_cast<std::uint32_t>(number),
                            .listed = static_cast<std::uint32_t>(left_.nodes - left_.last_votes),
                            .lost = node.leader,
                            .closed = std::exchange(node.closed, false)},
                           node.witness.charter());
    node.next = 0;
  }
  if (node.stops.empty()) return;
  const LineStop stop = node.stops[node.next++];
  node.due = static_cast<int>(stop.patience.count());
  luck_ = luck_ * 6'364'136'223'846'793'005ULL + 1;
  if (stop.own) node.due += static_cast<int>(luck_ >> 54);  // up to 1,023 ms, see open_longer()
  node.waited = false;
  node.at_first = stop.first;
  if (stop.own && !hubs_[at(number)]) open_hub(number, true);
  if (!stop.own && hubs_[at(number)] && !hubs_[at(number)]->led) close_hub(number);
  if (node.hub == static_cast<int>(stop.place)) return;
  hang_up(number);
  node.hub = static_cast<int>(stop.place);
}

void WalkState::open_hub(int number, bool takes_over) {
  if (takes_over) left_.openings = std::max(0, left_.openings - 1);
  hubs_[at(number)].emplace(Hub{.ledger = Ledger({.host = agent_of(number),
                                                  .after = nodes_[at(number)].witness.promised(),
                                                  .takes_over = takes_over}),
                                .number = ++openings_});
  hubs_[at(number)]->led = !takes_over;
}

void WalkState::close_hub(int number) {
  hubs_[at(number)].reset();
  for (int i = 0; i < left_.nodes; ++i) {
    Link& from = link(i, number);
    if (!std::exchange(from.hub_up, false)) continue;
    from.up.clear();
    if (from.node_up) from.down.push_back(nullptr);
  }
}

void WalkState::die(int number, bool told) {
  news_ = News::death;
  dead_ = number;
  Node& node = nodes_[at(number)];
  node.alive = false;
  hubs_[at(number)].reset();
  for (int i = 0; i < left_.nodes; ++i) {
    // To its hub: with a killed process the system closes the connections.
    Link& from = link(i, number);
    from.up.clear();
    if (told && std::exchange(from.hub_up, false) && from.node_up) from.down.push_back(nullptr);
    Link& to = link(number, i);
    to.down.clear();
    if (told && std::exchange(to.node_up, false) && to.hub_up) to.up.push_back(nullptr);
  }
  if (told) node.linked = false;
}

// how: 1 from the set to the rest, 3 both directions; 4 and 5: one link, from a/8 to a%8.
void WalkState::cut(int set, int how) {
  news_ = News::cut;
  is_cut_ = true;
  for (int from = 0; from < left_.nodes; ++from)
    for (int to = 0; to < left_.nodes; ++to) {
      const bool out =
          how < 4 ? ((set >> from) & 1) != 0 && ((set >> to) & 1) == 0 : set == from * 8 + to;
      if (!out) continue;
      cut_[at(from)] |= static_cast<std::uint8_t>(1U << to);
      if (how != 1 && how != 4) cut_[at(to)] |= static_cast<std::uint8_t>(1U << from);
    }
}

// Acts like HubServer::pump_ledger().
void WalkState::pump(int number) {
  Hub& hub = *hubs_[at(number)];
  for (auto output = hub.ledger.take_output(); !output.empty(); output = hub.ledger.take_output())
    for (auto& [to, frame] : output) {
      Link& of = link(node_of(to), number);
      if (of.hub_up && (of.node_up || !nodes_[at(node_of(to))].alive))
        of.down.push_back(std::make_shared<Frame>(std::move(frame)));
    }
  if (hub.ledger.deposed()) return close_hub(number);
  if (!hub.led && hub.ledger.leads()) lead(hub);
  const auto permitted = hub.ledger.take_permitted();
  if (!permitted || hub.wish < 0) return;
  if (hub.ledger.charter().end != Charter::End::none) {
    hub.over = ended_ = true;
  } else if (*permitted == hub.wish) {
    permitted_.resize(std::max(permitted_.size(), at(static_cast<int>(*permitted) + 1)), -1);
    int& by = permitted_[at(static_cast<int>(*permitted))];
    if (by >= 0) wrong(fmt::format("round {} is permitted twice", *permitted));
    if (ended_) wrong("a round is permitted after the end");
    by = hub.number;
    last_permitted_ = std::max(last_permitted_, *permitted);
    hub.round = *permitted;
  }
  hub.wish = -1;
}

// Acts like HubServer::lead() and the coordinator: goes on from what is left.
void WalkState::lead(Hub& hub) {
  hub.led = true;
  const Charter& left = hub.ledger.left();
  if (left.round < last_permitted_) wrong("a new leader does not know the last round");
  if (left.restarts != left.round) wrong("a new leader counts other restarts");
  if (ended_ && left.end != Charter::End::succeeded) wrong("a new leader does not know the end");
  hub.round = left.round;
  hub.over = left.end != Charter::End::none;
  // A failure of the round is told again, so the next rounds go on from there.
}

// Each round after the first costs one restart here, so their number is that of the round.
void WalkState::write(int number, bool end) {
  --left_.writes;
  Hub& hub = *hubs_[at(number)];
  PermitRequest request;
  hub.wish = end ? hub.round : std::max(hub.round, hub.ledger.charter().round) + 1;
  request.round = hub.wish;
  request.restarts = static_cast<int>(hub.wish);
  if (end) request.end = PermitRequest::End::succeeded;
  hub.ledger.write(request);
  pump(number);
}

}  // namespace lockstep::rendezvous::hub::testing
