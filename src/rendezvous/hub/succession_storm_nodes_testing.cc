// What the drivers of an agent do: HubServer, HubBackend, HubSuccession, HubMember and the agent's
// run loop, without sockets and timers.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "succession_storm_testing.h"
#include "succession_walk_testing.h"

namespace lockstep::rendezvous::hub::testing {
using namespace std::chrono_literals;

// --- the member ---

// Acts like HubDial, with a greeting of one message.
void Storm::dial(int number) {
  Agent& agent = agents_[number];
  Dialing& dialing = *agent.dialing;
  const Time now = local(agent);
  if (now < dialing.next) return;
  const auto failed = [&](Errc code) {
    agent.dialing.reset();
    agent.core->dial_failed({code, "no hub", {}, 0});
    happened(number);
  };
  if (now >= dialing.until) return failed(Errc::timeout);
  dialing.next = now + 200ms;
  if (dialing.conn != 0) return;  // greets
  if (settings_.lists_hosts && !agent.hub && agent.witness->charter().term == 0)
    agent.target = way_in(number);
  Agent& to = agents_[agent.target];
  const bool reaches =
      to.powered && !blocked(number, agent.target) && !blocked(agent.target, number);
  if (!reaches || to.stopped) return;
  if (!to.hub) {
    if (now >= dialing.refused_until) failed(Errc::unavailable);
    return;
  }
  const PeerId id = dialing.conn = ++last_conn_;
  conns_.emplace(id, Conn{.agent = number, .place = agent.target, .hub = to.hub->number});
  welcome(agent.target, id);
}

// Acts like HubMember: the greeting, the witness, and the core.
void Storm::hear(int number, const Mail& mail) {
  Agent& agent = agents_[number];
  const Time now = local(agent);
  agent.heard = now_;
  if (const auto* hello = std::get_if<Welcome>(mail.get())) {
    agent.conn = agent.dialing->conn;
    agent.dialing.reset();
    agent.core->connected(Ms(hello->heartbeat_ms), Ms(hello->dead_ms), 2, now);
    return happened(number);
  }
  agent.core->bytes_came(now);
  if (const auto* call = std::get_if<Call>(mail.get()))
    return send(agent.conn, up, std::make_shared<Frame>(agent.witness->testify(*call)));
  if (const auto* charter = std::get_if<Charter>(mail.get())) {
    const bool is_refused = must_refuse(*agent.witness, *charter);
    Frame answer = agent.witness->take(*charter);
    const bool agreed = std::holds_alternative<Agreed>(answer);
    if (is_refused && agreed) wrong("a node agrees to a term below its promise");
    send(agent.conn, up, std::make_shared<Frame>(std::move(answer)));
    if (!agreed) return;
    agent.core->led();
    found(number);
    if (!settings_.lists_hosts) return;
    // HubBackend::learn_hosts
    agent.core->expect_succession();
    agent.search.leader = place_of(charter->now, charter->now.first);
    return;
  }
  if (const auto* placed = std::get_if<Placed>(mail.get()))
    wrong(oracle_.placed(conns_.at(agent.conn).hub,
                         {placed->round.number, placed->round.group_rank,
                          placed->round.group_world_size, placed->round.restarts},
                         agent.nonce));
  agent.core->take(*mail, now);
  happened(number);
}

void Storm::happened(int number) {
  Agent& agent = agents_[number];
  do_steps(number);
  while (agent.core) {
    auto outcome = agent.core->next_outcome();
    if (!outcome) break;
    tell(number, std::move(*outcome));
    do_steps(number);
  }
}

void Storm::do_steps(int number) {
  Agent& agent = agents_[number];
  using Core = HubMemberCore;
  const auto stop_dialing = [&] {
    if (agent.dialing && agent.dialing->conn != 0) close_agent_end(agent.dialing->conn);
    agent.dialing.reset();
  };
  while (agent.core) {
    const auto steps = agent.core->take_steps();
    if (steps.empty()) return;
    for (const auto& any : steps) {
      const Time now = local(agent);
      if (const auto* wish = std::get_if<Core::Dial>(&any)) {
        stop_dialing();
        agent.dialing = Dialing{now + wish->patience, now + wish->refused_patience, now};
      } else if (std::holds_alternative<Core::StopDialing>(any)) {
        stop_dialing();
      } else if (std::holds_alternative<Core::HangUp>(any)) {
        stop_dialing();
        if (agent.conn != 0) close_agent_end(std::exchange(agent.conn, 0));
      } else if (const auto* frame = std::get_if<Core::Send>(&any)) {
        if (agent.conn != 0) send(agent.conn, up, std::make_shared<Frame>(frame->frame));
      } else if (const auto* store = std::get_if<Core::OpenStore>(&any)) {
        agent.core->store_offered(store->round, StorePlace{fmt::format("n{}", number), 7000});
      }
    }
  }
}

// Acts like the agent's run loop. Workers take some time to stop.
void Storm::tell(int number, HubMemberCore::Outcome outcome) {
  using Core = HubMemberCore;
  Agent& agent = agents_[number];
  const Time now = local(agent);
  if (auto* connected = std::get_if<Core::Connected>(&outcome)) {
    if (!connected->status) return leave(number, Departure::failed);
    found(number);
    agent.core->set_address(fmt::format("n{}", number));
    agent.core->join(now);
  } else if (auto* joined = std::get_if<Core::Joined>(&outcome)) {
    if (!joined->round) return leave(number, Departure::failed);
    if (!*joined->round) return leave(number, Departure::succeeded);
    agent.works = (*joined->round)->number;
    agent.awake = now_;
  } else if (auto* all = std::get_if<Core::AllFinished>(&outcome)) {
    if (all->status) wrong(oracle_.finished());
    // The agent's own loop acts on that, after the frames that came with it.
    agent.succeeds = now + up_to(100);
  } else if (auto* stop = std::get_if<Interruption>(&outcome)) {
    agent.works = -1;
    agent.finishes.reset();
    if (stop->kind == Interruption::Kind::rejoin) agent.finished = -1;
    (stop->kind == Interruption::Kind::rejoin ? agent.rejoins : agent.leaves) = now + up_to(800);
  } else if (std::holds_alternative<Core::Departed>(outcome)) {
    agent.exits = now + 30s;
  } else if (auto* unlinked = std::get_if<Core::Unlinked>(&outcome)) {
    lost(number, unlinked->error);
  }
}

void Storm::leave(int number, Departure how) {
  Agent& agent = agents_[number];
  agent.search.over = true;
  agent.search.on = false;
  agent.search.due.reset();
  agent.works = -1;
  agent.finishes.reset();
  agent.rejoins.reset();
  agent.leaves.reset();
  agent.succeeds.reset();
  if (how == Departure::failed && agent.finished >= 0) failures_.insert(agent.finished);
  agent.core->leave(how, local(agent));
}

// --- HubSuccession ---

void Storm::lost(int number, const Error& error) {
  Agent& agent = agents_[number];
  Search& search = agent.search;
  const bool over = agent.witness->charter().end != Charter::End::none;
  if (search.over || (over && !agent.core->awaits_hub())) return;
  if (search.on) return step(number);
  const bool closed = error.code != Errc::timeout;
  Ms patience = 30s;
  if (closed && search.leader != own_place(number) &&
      !may_go_on_without(search.leader, agent.witness->charter()))
    patience = 4s;
  search.until.begin(patience, local(agent));
  search.on = true;
  search.closed = closed;
  search.stops.clear();
  search.next = 0;
  step(number);
}

void Storm::found(int number) {
  Search& search = agents_[number].search;
  if (!search.on) return;
  search.on = false;
  search.due.reset();
  if (agents_[number].hub && static_cast<int>(search.place) != number) close_hub(number);
  if (!settings_.lists_hosts) search.leader = search.place;
}

void Storm::step(int number) {
  Agent& agent = agents_[number];
  Search& search = agent.search;
  const Time now = local(agent);
  if (search.until.is_over(now)) return give_up(number);
  const auto& hosts = agent.witness->charter().hosts;
  const auto listed =
      static_cast<std::uint32_t>(settings_.lists_hosts ? hosts.size() : agents_.size());
  if (search.next >= search.stops.size()) {
    search.stops = walk_line({.own = own_place(number),
                              .listed = listed,
                              .lost = search.leader,
                              .closed = std::exchange(search.closed, false)},
                             agent.witness->charter());
    search.next = 0;
  }
  if (search.stops.empty()) return;
  LineStop stop = search.stops[search.next++];
  if (settings_.lists_hosts)
    stop.place = static_cast<std::uint32_t>(std::stoi(hosts.at(stop.place).host.substr(1)));
  search.place = stop.place;
  search.due = now + stop.patience + (stop.own ? up_to(1'020) : 0ms);
  search.until.plan(*search.due);
  search.waited = false;
  search.at_first = stop.first;
  if (!stop.own && agent.hub && !agent.hub->leads) close_hub(number);
  if (stop.own && !agent.hub) open_hub(number, true);
  move_to(number, static_cast<int>(stop.place));
}

void Storm::give_up(int number) {
  Agent& agent = agents_[number];
  agent.search.over = true;
  agent.search.on = false;
  agent.search.due.reset();
  if (agent.hub && !agent.hub->leads) close_hub(number);
  gave_up_.insert(agent.nonce);
  note(fmt::format("n{} gives up", number));
  agent.core->give_up({Errc::canceled, "no hub", {}, 0});
  happened(number);
}

void Storm::move_to(int number, int place) {
  Agent& agent = agents_[number];
  // The core compares the texts of the places, so a hub of its own is another place.
  agent.target = place;
  agent.core->move_to(place == number ? "own" : std::to_string(place), local(agent));
  happened(number);
}

std::uint32_t Storm::own_place(int number) const {
  const Agent& agent = agents_[number];
  return settings_.lists_hosts ? place_of(agent.witness->charter().now, agent.nonce)
                               : static_cast<std::uint32_t>(number);
}

// Returns where a node without a list finds the hub: at the endpoint, or where the endpoint's host
// says, or where the new hub calls it to. The node has a link to each of these.
int Storm::way_in(int number) const {
  for (int other = 0; other < settings_.nodes; ++other) {
    const bool leads = agents_[other].alive && agents_[other].hub && agents_[other].hub->leads;
    if (leads && !blocked(number, other) && !blocked(other, number)) return other;
  }
  return 0;
}

// --- HubServer ---

void Storm::open_hub(int number, bool takes_over) {
  Agent& agent = agents_[number];
  CoordinatorSettings rules;
  rules.run_id = "job";
  rules.host = agent.nonce;
  rules.min_nodes = settings_.min_nodes;
  rules.max_nodes = settings_.max_nodes;
  rules.last_call = 2s;
  rules.heartbeat = 500ms;
  rules.dead = 2'500ms;
  rules.return_grace = 5s;
  rules.fenced = true;
  agent.hub.emplace(Hub{.number = ++openings_,
                        .rules = rules,
                        .ledger = Ledger({.host = agent.nonce,
                                          .after = agent.witness->promised(),
                                          .takes_over = takes_over,
                                          .lists_hosts = settings_.lists_hosts}),
                        .coordinator = Coordinator(rules, local(agent)),
                        .leads = !takes_over});
}

void Storm::close_hub(int number) {
  auto hub = std::exchange(agents_[number].hub, {});
  for (const auto& [id, guest] : hub->guests)
    close_hub_end(id);
}

void Storm::welcome(int number, PeerId id) {
  Agent& agent = agents_[number];
  Hub& hub = *agent.hub;
  const Nonce& nonce = agents_[conns_.at(id).agent].nonce;
  hub.guests[id].agent = nonce;
  send(id, down, std::make_shared<Frame>(Welcome{.heartbeat_ms = 500, .dead_ms = 2500}));
  hub.ledger.arrive(id, nonce);
  if (hub.leads)
    hub.coordinator.arrive(id, nonce, fmt::format("n{}", conns_.at(id).agent), local(agent));
  pump(number);
}

void Storm::take(int number, PeerId id, const Mail& mail) {
  Agent& agent = agents_[number];
  Hub& hub = *agent.hub;
  hub.guests.at(id).heard = now_;
  hub.coordinator.hear(id, local(agent));
  if (const auto* testimony = std::get_if<Testimony>(mail.get())) {
    hub.ledger.take(id, *testimony);
  } else if (const auto* agreed = std::get_if<Agreed>(mail.get())) {
    hub.ledger.take(id, *agreed);
  } else if (hub.leads) {
    if (const auto* failed = std::get_if<Failed>(mail.get())) oracle_.failed(failed->round);
    if (!hub.coordinator.take(id, *mail, local(agent))) wrong("a frame that agents do not send");
  } else if (!std::holds_alternative<Beat>(*mail)) {
    hub.guests.at(id).kept.push_back(*mail);
  }
  pump(number);
}

void Storm::lose(int number, PeerId id, const std::string& why) {
  Hub& hub = *agents_[number].hub;
  if (hub.guests.erase(id) == 0) return;
  close_hub_end(id);
  hub.ledger.lose(id);
  hub.coordinator.lose(id, why, local(agents_[number]));
  pump(number);
}

void Storm::pump(int number) {
  Hub& hub = *agents_[number].hub;
  do {
    pump_coordinator(number);
    if (hub.ledger.has_quorum()) hub.coordinator.conclude();
    pump_coordinator(number);
  } while (pump_ledger(number));
}

void Storm::pump_coordinator(int number) {
  Hub& hub = *agents_[number].hub;
  const auto request = hub.coordinator.take_permit_request();
  const bool ends_well = request && request->end == PermitRequest::End::succeeded;
  if (ends_well && hub.ledger.has_host()) hub.end.begin();
  send_output(number);
  if (!request) return;
  const bool counts = request->restarts > std::exchange(hub.restarts, request->restarts);
  const bool may_count = hub.leads && !hub.deposed;
  if (counts && may_count && hub.coordinator.viable() < settings_.min_nodes) oracle_.bereft();
  hub.ledger.write(*request);
}

void Storm::send_output(int number) {
  Hub& hub = *agents_[number].hub;
  for (const auto& output : hub.end.let_through(hub.coordinator.take_output())) {
    if (!hub.guests.contains(output.to)) continue;
    if (output.bytes && output.bytes != parsed_bytes_) {
      parsed_bytes_ = output.bytes;
      parsed_ = std::make_shared<Frame>(*parse_frame(std::string_view(*output.bytes).substr(4)));
    }
    if (output.bytes) send(output.to, down, parsed_);
    if (!output.close) continue;
    hub.guests.erase(output.to);
    close_hub_end(output.to);
    hub.ledger.lose(output.to);
  }
}

bool Storm::pump_ledger(int number) {
  Agent& agent = agents_[number];
  Hub& hub = *agent.hub;
  for (auto output = hub.ledger.take_output(); !output.empty(); output = hub.ledger.take_output())
    for (auto& [to, frame] : output)
      if (hub.guests.contains(to)) send(to, down, std::make_shared<Frame>(std::move(frame)));
  if (hub.ledger.deposed()) {
    depose(number, "another node leads");
    return false;
  }
  if (!hub.leads && hub.ledger.leads()) {
    lead(number);
    return true;
  }
  const auto permitted = hub.ledger.take_permitted();
  if (!permitted) return false;
  wrong(oracle_.permitted(hub.number, hub.ledger.charter(), now_));
  hub.end.release();
  hub.coordinator.permit(*permitted, local(agent));
  return true;
}

void Storm::lead(int number) {
  Agent& agent = agents_[number];
  Hub& hub = *agent.hub;
  hub.leads = true;
  ++counts_.takeovers;
  const Charter& left = hub.ledger.left();
  wrong(oracle_.led(left));
  if (left.end != Charter::End::none) ++counts_.heirs;
  note(fmt::format("n{} leads from round {}, {} restarts", number, left.round, left.restarts));
  hub.rules.first_round = left.round + 1;
  hub.rules.restarts = hub.restarts = left.restarts;
  hub.rules.takeover = left.round >= 0;
  hub.rules.last_lead = left.lead;
  hub.rules.last_finished = left.finished;
  const Time now = local(agent);
  hub.coordinator = Coordinator(hub.rules, now);
  if (left.end != Charter::End::none)
    hub.coordinator.end_before(left.end == Charter::End::succeeded, left.why);
  for (const auto& [id, guest] : hub.guests)
    hub.coordinator.arrive(id, guest.agent, fmt::format("n{}", conns_.at(id).agent), now);
  for (auto& [id, guest] : hub.guests)
    for (Frame& frame : std::exchange(guest.kept, {})) {
      if (const auto* failed = std::get_if<Failed>(&frame)) oracle_.failed(failed->round);
      if (!hub.coordinator.take(id, std::move(frame), now)) wrong("a frame of no agent");
    }
}

void Storm::depose(int number, const std::string& why) {
  Hub& hub = *agents_[number].hub;
  if (std::exchange(hub.deposed, true)) return;
  note(fmt::format("n{} steps down: {}", number, why));
  if (hub.end.drop()) return;
  hub.coordinator.step_down(why);
  pump_coordinator(number);
}

void Storm::tick_hub(int number) {
  Agent& agent = agents_[number];
  Hub& hub = *agent.hub;
  const Time now = local(agent);
  if (hub.deposed) return close_hub(number);
  if (now < hub.coordinator.next_time()) return;
  const std::size_t peers = hub.coordinator.peers();
  const auto quiet = static_cast<std::size_t>(
      std::count_if(hub.guests.begin(), hub.guests.end(),
                    [this](const auto& entry) { return entry.second.heard < now_ - 1s; }));
  hub.coordinator.tick(now);
  // A jump of the clock may take one node: rank 0, which owes the address of the workers' store.
  if (peers > hub.coordinator.peers() + quiet + 1) wrong("a hub takes nodes that spoke for silent");
  const bool may_end = hub.coordinator.over() && !hub.end.holds();
  if (!may_end && hub.quorum.must_give_up(hub.ledger, hub.leads, now)) depose(number, "no quorum");
  pump(number);
}

}  // namespace lockstep::rendezvous::hub::testing
