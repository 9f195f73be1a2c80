// The world of the storm: time, the network, processes and faults.
#include "succession_storm_testing.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "succession_walk_testing.h"

namespace lockstep::rendezvous::hub::testing {
using namespace std::chrono_literals;
namespace {

constexpr Ms kTurn = 20ms;  // the grain of the time
constexpr std::array kNames{"kill", "power cut",  "stop", "cut",    "cut one way",
                            "slow", "clock jump", "back", "failure"};

}  // namespace

// --- the world ---

Storm::Storm(const StormSettings& settings)
    : settings_(settings),
      random_(settings.seed),
      agents_(static_cast<std::size_t>(settings.nodes)),
      cut_(agents_.size()) {}

void Storm::note(std::string text) {
  const double seconds = std::chrono::duration<double>(now_ - Time(std::chrono::hours(1))).count();
  notes_.push_back(fmt::format("{:.2f} {}", seconds, std::move(text)));
}

std::string Storm::trace() const {
  std::string text;
  for (const std::string& line : notes_)
    text += "\n  " + line;
  return text;
}

void Storm::wrong(const std::string& what) {
  if (what.empty() || !fault_.empty()) return;
  note(what);
  fault_ = what;
}

bool Storm::blocked(int from, int to) const {
  return cut_[from].contains(to);
}

void Storm::schedule(PeerId id, Way way, Time due) {
  due_[due].emplace_back(id, way);
}

void Storm::send(PeerId id, Way way, Mail mail) {
  const auto at = conns_.find(id);
  if (at == conns_.end()) return;
  Conn& conn = at->second;
  // The other end is closed: the bytes go nowhere.
  if (!(way == up ? conn.hub_up : conn.agent_up)) return;
  Ms latency = kTurn * (1 + static_cast<int>(pick(3)));
  for (const Agent* end : {&agents_[conn.agent], &agents_[conn.place]})
    if (now_ < end->slow_until) latency += end->slow;
  auto& queue = conn.ways[way];
  const Time due = std::max(now_ + latency, queue.empty() ? now_ : queue.back().due);
  queue.push_back({std::move(mail), due});
  schedule(id, way, due);
}

void Storm::close_agent_end(PeerId id) {
  const auto at = conns_.find(id);
  if (at == conns_.end()) return;
  if (!at->second.hub_up) {
    conns_.erase(at);
    return;
  }
  at->second.agent_up = false;
  at->second.ways[down].clear();
  send(id, up, nullptr);
}

void Storm::close_hub_end(PeerId id) {
  const auto at = conns_.find(id);
  if (at == conns_.end()) return;
  if (!at->second.agent_up) {
    conns_.erase(at);
    return;
  }
  at->second.hub_up = false;
  at->second.ways[up].clear();
  send(id, down, nullptr);
}

// Hands over what is due, unless the network or the receiver holds it back.
void Storm::deliver(PeerId id, Way way) {
  for (;;) {
    const auto at = conns_.find(id);
    if (at == conns_.end()) return;
    Conn& conn = at->second;
    auto& queue = conn.ways[way];
    if (queue.empty() || queue.front().due > now_) return;
    const int from = way == up ? conn.agent : conn.place;
    const int to = way == up ? conn.place : conn.agent;
    const Agent& receiver = agents_[to];
    if (blocked(from, to) || receiver.stopped || !receiver.powered) return;
    const Mail mail = std::move(queue.front().mail);
    queue.pop_front();
    if (way == up) {
      if (!conn.hub_up) return;
      if (mail) {
        take(to, id, mail);
        continue;
      }
      if (agents_[to].hub) lose(to, id, "the connection was closed");
      return;
    }
    if (!conn.agent_up) return;
    if (mail) {
      hear(to, mail);
      continue;
    }
    conns_.erase(at);
    Agent& agent = agents_[to];
    if (agent.dialing && agent.dialing->conn == id) agent.dialing->conn = 0;
    if (agent.conn != id) return;
    agent.conn = 0;
    agent.core->lost({Errc::unavailable, "closed", {}, 0}, local(agent));
    return happened(to);
  }
}

void Storm::play(Ms time) {
  const Time end = now_ + time;
  const bool over = oracle_.ended();
  while (now_ < end && fault_.empty() && over == oracle_.ended())
    turn();
}

void Storm::turn() {
  now_ += kTurn;
  if (heals_ && now_ >= *heals_) {
    heals_.reset();
    note("the network heals");
    for (auto& row : cut_)
      row.clear();
    for (const auto& [id, conn] : conns_)
      for (const Way way : {down, up})
        if (!conn.ways[way].empty()) schedule(id, way, now_ + kTurn);
  }
  // A process that goes on sees its timers before its sockets, like the loop's.
  const int first = static_cast<int>(pick(agents_.size()));
  for (int i = 0; i < settings_.nodes; ++i)
    play_agent((first + i) % settings_.nodes);
  while (!due_.empty() && due_.begin()->first <= now_) {
    const auto now = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    for (const auto& [id, way] : now)
      deliver(id, way);
  }
  check();
}

void Storm::play_agent(int number) {
  Agent& agent = agents_[number];
  if (!agent.alive) return;
  if (agent.stopped) {
    if (now_ < agent.wakes) return;
    agent.stopped = false;
    agent.awake = now_;
    for (const auto& [id, conn] : conns_) {
      if (conn.agent == number && !conn.ways[down].empty()) schedule(id, down, now_);
      if (conn.place == number && !conn.ways[up].empty()) schedule(id, up, now_);
    }
  }
  const Time now = local(agent);
  const auto due = [&](std::optional<Time>& time) {
    if (!time || now < *time) return false;
    time.reset();
    return true;
  };
  if (const auto next = agent.core->next_time(); next && now >= *next) {
    const bool linked = agent.core->link() == HubMemberCore::Link::up;
    agent.core->tick("", now);
    if (linked && agent.core->link() != HubMemberCore::Link::up && now_ - agent.heard < 1s)
      wrong("a node takes a hub that spoke for silent");
    happened(number);
  }
  if (agent.hub) tick_hub(number);
  if (due(agent.search.due)) {
    const bool inside = agent.conn != 0 && static_cast<int>(agent.search.place) != number;
    if (inside && (!std::exchange(agent.search.waited, true) || agent.search.at_first) &&
        !agent.search.until.is_over(now)) {
      agent.search.due = now + 3s;
      agent.search.until.plan(now + 3s);
    } else {
      step(number);
    }
  }
  if (agent.dialing) dial(number);
  if (due(agent.rejoins)) {
    agent.core->join(now);
    happened(number);
  }
  if (due(agent.finishes)) {
    agent.finished = std::exchange(agent.works, -1);
    agent.core->finish();
    happened(number);
  }
  if (due(agent.succeeds)) {
    leave(number, Departure::succeeded);
    happened(number);
  }
  if (due(agent.leaves)) {
    leave(number, Departure::failed);
    happened(number);
  }
  if (agent.exits && (!agent.hub || agent.hub->guests.empty() || now >= *agent.exits))
    end_process(number, true);
}

// --- faults ---

void Storm::begin(int number, bool hosts) {
  const Agent old = std::move(agents_[number]);
  Agent& agent = agents_[number] = {};
  agent.clock = old.clock;
  agent.alive = true;
  agent.awake = now_;
  ++lives_;
  std::copy_n(reinterpret_cast<const std::uint8_t*>(&lives_), sizeof lives_, agent.nonce.begin());
  agent.witness.emplace(settings_.lists_hosts ? kNoPlace : static_cast<std::uint32_t>(number));
  if (settings_.lists_hosts) agent.witness->set_hub({fmt::format("n{}", number), 29400});
  HubMemberRules rules;
  rules.min_nodes = settings_.min_nodes;
  rules.max_nodes = settings_.max_nodes;
  rules.offer.host = fmt::format("n{}", number);
  rules.offer.max_restarts = 1'000'000;
  rules.succession = !settings_.lists_hosts;
  agent.core.emplace(std::move(rules));
  if (hosts) open_hub(number, false);
  agent.core->connect(hosts ? "own" : "0", local(agent));
  happened(number);
  if (hosts || settings_.lists_hosts) return;
  agent.search.on = true;
  step(number);
}

// Returns the connections of the node and of its hub, the oldest first.
std::vector<PeerId> Storm::conns_of(int number) const {
  std::vector<PeerId> own;
  for (const auto& [id, conn] : conns_)
    if (conn.agent == number || conn.place == number) own.push_back(id);
  std::sort(own.begin(), own.end());
  return own;
}

// told: the machine lives on, so its kernel closes the connections.
void Storm::end_process(int number, bool told) {
  Agent& agent = agents_[number];
  agent.alive = agent.stopped = false;
  agent.powered = told;
  agent.works = -1;
  const std::vector<PeerId> own = conns_of(number);
  agent.hub.reset();
  agent.core.reset();
  agent.dialing.reset();
  agent.search = {};
  agent.exits.reset();
  agent.conn = 0;
  for (const PeerId id : own) {
    if (!told) {
      // Frames on the way from the machine or to it are lost.
      Conn& conn = conns_.at(id);
      conn.ways = {};
      (conn.agent == number ? conn.agent_up : conn.hub_up) = false;
    } else if (conns_.at(id).agent == number) {
      close_agent_end(id);
      if (conns_.contains(id) && conns_.at(id).place == number) conns_.erase(id);
    } else {
      close_hub_end(id);
    }
  }
}

int Storm::leader() const {
  int found = -1;
  for (int i = 0; i < settings_.nodes; ++i) {
    const auto& hub = agents_[i].hub;
    if (hub && hub->leads && hub->ledger.has_quorum()) found = i;
  }
  return found;
}

int Storm::living() const {
  return static_cast<int>(std::count_if(agents_.begin(), agents_.end(),
                                        [](const Agent& agent) { return agent.alive; }));
}

void Storm::strike() {
  constexpr std::array kMix{Fault::kill, Fault::power,       Fault::stop, Fault::stop,
                            Fault::cut,  Fault::cut_one_way, Fault::slow, Fault::jump,
                            Fault::back, Fault::back,        Fault::fail};
  Fault fault = kMix.at(pick(kMix.size()));
  // Most of the nodes live, most of the time, or no job would see many faults.
  if (living() < settings_.nodes * 7 / 10) fault = Fault::back;
  if (living() == settings_.nodes && fault == Fault::back) fault = Fault::power;
  const int at = leader();
  const bool aims = at >= 0 && fault != Fault::back && pick(10) < 4;
  int victim = aims ? at : static_cast<int>(pick(agents_.size()));
  while (agents_[victim].alive == (fault == Fault::back))
    victim = (victim + 1) % settings_.nodes;
  hit(fault, victim);
}

void Storm::hit(Fault fault, int victim) {
  const bool leads = victim == leader();
  ++counts_.faults;
  if (leads) ++counts_.at_leader;
  note(fmt::format("{} n{}{}", kNames.at(static_cast<std::size_t>(fault)), victim,
                   leads ? ", the leader" : ""));
  strike(fault, victim);
}

void Storm::strike(Fault fault, int victim) {
  Agent& agent = agents_[victim];
  switch (fault) {
    case Fault::kill:
    case Fault::power:
      return end_process(victim, fault == Fault::kill);
    case Fault::stop:
      agent.stopped = true;
      agent.wakes = now_ + 300ms + up_to(9'000);
      return;
    case Fault::cut:
    case Fault::cut_one_way:
      return cut(victim, fault == Fault::cut_one_way);
    case Fault::slow:
      agent.slow = 50ms + up_to(pick(2) == 0 ? 400 : 3'500);
      agent.slow_until = now_ + up_to(10'000);
      return;
    case Fault::jump:
      agent.clock += pick(2) == 0 ? up_to(4'000) : up_to(120'000);
      return;
    case Fault::back:
      // The kernel of a machine that is up again resets the old connections.
      for (const PeerId id : conns_of(victim))
        if (conns_.at(id).agent == victim) {
          close_agent_end(id);
        } else {
          close_hub_end(id);
        }
      return begin(victim, false);
    case Fault::fail:
      if (agent.works < 0 || agent.stopped) return;
      agent.works = -1;
      agent.finishes.reset();
      agent.core->tell_failure(fmt::format("a worker of n{}", victim), false);
      agent.rejoins = local(agent) + up_to(800);
      return happened(victim);
  }
}

// Cuts the victim's side of the network off: alone, with some nodes, or with half of them. Or only
// one link breaks.
void Storm::cut(int victim, bool one_way) {
  std::vector<int> others(agents_.size());
  std::iota(others.begin(), others.end(), 0);
  std::shuffle(others.begin(), others.end(), random_);
  const std::size_t with = std::array<std::size_t, 4>{0, 1, pick(8), agents_.size() / 2}[pick(4)];
  std::set<int> side{victim};
  for (std::size_t i = 0; i < std::min(with, others.size()); ++i)
    side.insert(others[i]);
  const bool out = pick(2) == 0;
  const bool one_link = pick(6) == 0;
  for (const int other : others) {
    if (side.contains(other)) continue;
    for (const int own : side) {
      if (!one_way || out) cut_[own].insert(other);
      if (!one_way || !out) cut_[other].insert(own);
    }
    if (one_link) break;
  }
  heals_ = now_ + 300ms + up_to(12'000);
}

}  // namespace lockstep::rendezvous::hub::testing
