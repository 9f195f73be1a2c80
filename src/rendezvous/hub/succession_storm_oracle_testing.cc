// The storm's oracle: what must hold at each moment and in the end. Also the course of one job.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "succession_storm_testing.h"
#include "succession_walk_testing.h"

namespace lockstep::rendezvous::hub::testing {
using namespace std::chrono_literals;
namespace {

// A node must notice within this time that its round is over: almost the silence of its hub (2.5
// s), then 3 s without a connection, and some beats.
constexpr Ms kNotice = 6'500ms;

}  // namespace

void Storm::Counts::add(const Counts& other) {
  faults += other.faults;
  at_leader += other.at_leader;
  takeovers += other.takeovers;
  rounds += other.rounds;
  restarts += other.restarts;
  ended += other.ended;
  lost += other.lost;
  heirs += other.heirs;
  doomed += other.doomed;
  slowest = std::max(slowest, other.slowest);
}

// --- the oracle ---

std::string StormOracle::permitted(int hub, const Charter& charter, Time now) {
  // A hub that was stopped learns late that a quorum had agreed. The next leader knows the round
  // then, and the stale hub notices soon that it has no quorum.
  if (charter.round < last_) {
    const int by = by_.try_emplace(charter.round, hub).first->second;
    return by == hub ? "" : fmt::format("round {} is permitted twice", charter.round);
  }
  if (ended() && charter.end != end_) return fmt::format("hub {} records another end", hub);
  const bool fresh = charter.round > last_;
  if (fresh && ended()) return "a round is permitted after the end";
  if (!fresh && by_.contains(charter.round) && charter.restarts < restarts_)
    return fmt::format("hub {} forgets a restart", hub);
  if (charter.restarts > restarts_ + 1 ||
      (charter.restarts > restarts_ && !failed_.contains(last_)))
    return fmt::format("hub {}: {} restarts after {}, and round {} has not failed", hub,
                       charter.restarts, restarts_, last_);
  // A restart counts once for a round, before the next round is permitted.
  if (charter.restarts > restarts_) failed_.erase(last_);
  restarts_ = charter.restarts;
  end_ = charter.end;
  if (!fresh) return {};
  last_ = charter.round;
  last_at_ = now;
  by_[last_] = hub;
  return {};
}

// A quorum has recorded `left`.
std::string StormOracle::led(const Charter& left) {
  if (left.round < last_) return "a new leader does not know the last round";
  if (left.restarts < restarts_) return "a new leader does not know all restarts";
  if (ended() && left.end != end_) return "a new leader does not know the end";
  end_ = left.end;
  return {};
}

std::string StormOracle::placed(int hub, const Told& told, const Nonce& agent) {
  const auto by = by_.find(told.round);
  if (by == by_.end() || by->second != hub)
    return fmt::format("hub {} places round {} without permission", hub, told.round);
  auto& placing =
      placed_.try_emplace(told.round, Placing{hub, told.size, told.restarts, {}}).first->second;
  if (placing.hub != hub || placing.size != told.size || placing.restarts != told.restarts)
    return fmt::format("round {} is two rounds", told.round);
  if (placing.ranks.try_emplace(told.rank, agent).first->second != agent)
    return fmt::format("two nodes have rank {} of round {}", told.rank, told.round);
  return {};
}

std::string StormOracle::works(std::int64_t round, Time awake, Time now) const {
  if (round >= last_ || now - std::max(awake, last_at_) < kNotice) return {};
  return fmt::format("workers of round {} still run beside those of round {}", round, last_);
}

// --- the judgement ---

// Returns whether a quorum of the voters lives. Nodes that look for a hub may be about to give up.
bool Storm::has_voters(bool with_searching) const {
  const Charter* latest = nullptr;
  std::set<Nonce> living;
  if (with_searching) living = gave_up_;
  for (const Agent& agent : agents_) {
    if (!agent.alive) continue;
    if (with_searching || (!agent.search.on && !agent.search.over)) living.insert(agent.nonce);
    if (latest == nullptr || is_newer(agent.witness->charter(), *latest))
      latest = &agent.witness->charter();
  }
  if (latest == nullptr) return false;
  return latest->term == 0 ? with_searching : is_quorum(latest->now, living);
}

// Two hubs may believe to lead. Only one may find a quorum that still follows its term.
void Storm::check() {
  if (oracle_.ended() && !ended_at_) ended_at_ = now_;
  const bool full_second = now_.time_since_epoch() % 1s == 0ms;
  if (full_second && !doomed_ && !has_voters(true)) doomed_ = true;
  int leaders = 0;
  for (int i = 0; i < settings_.nodes; ++i) {
    const Agent& agent = agents_[i];
    if (agent.alive && !agent.stopped && agent.works >= 0)
      wrong(oracle_.works(agent.works, agent.awake, now_));
    if (agent.hub && agent.hub->ledger.leads() && !agent.hub->deposed) ++leaders;
  }
  if (leaders < 2) return;
  leaders = 0;
  for (const Agent& host : agents_) {
    if (!host.hub) continue;
    std::set<Nonce> followers;
    for (const Agent& agent : agents_)
      if (agent.alive && agent.witness->promised() <= LedgerPeek::term(host.hub->ledger))
        followers.insert(agent.nonce);
    if (LedgerPeek::may_decide(host.hub->ledger, followers)) ++leaders;
  }
  if (leaders < 2) return;
  wrong("two leaders could each permit a round");
}

// Returns what the node and its hub have recorded, for the trace.
std::string Storm::words(int number) const {
  const Agent& agent = agents_[number];
  // Names the voters by node. "(old)": an agent of an earlier process.
  const auto names_of = [&](const Voters& voters) {
    std::string text;
    for (const Voter& voter : voters.all) {
      int at = 0;
      while (at < settings_.nodes && agents_[at].nonce != voter.agent)
        ++at;
      text += fmt::format("{}{}", text.empty() ? "" : ",",
                          at < settings_.nodes ? std::to_string(at) : "(old)");
    }
    return text;
  };
  const auto text_of = [&](const Charter& charter) {
    return fmt::format("{:x}.{} round {} now {} before {}", charter.term, charter.version,
                       charter.round, names_of(charter.now), names_of(charter.before));
  };
  std::string text =
      fmt::format("n{}: phase {} link {} works {} promised {:x} has {}", number,
                  static_cast<int>(agent.core->phase()), static_cast<int>(agent.core->link()),
                  agent.works, agent.witness->promised(), text_of(agent.witness->charter()));
  if (agent.hub)
    text += fmt::format("; hub {} {}{:x} of {} has {}", agent.hub->number,
                        agent.hub->leads ? "leads in " : "gathers in ",
                        LedgerPeek::term(agent.hub->ledger), agent.hub->ledger.count(),
                        text_of(agent.hub->ledger.charter()));
  return text;
}

void Storm::run() {
  for (int i = 0; i < settings_.nodes; ++i)
    begin(i, i == 0);
  play(4s);
  for (int i = 0; i < settings_.faults && fault_.empty() && living() > 0; ++i) {
    if (oracle_.ended()) {
      // The worst moment: some nodes have been told the end, and others have not.
      play(20ms * static_cast<int>(pick(4)));
      if (leader() >= 0) hit(pick(2) == 0 ? Fault::power : Fault::cut, leader());
      break;
    }
    // Faults come in groups, or when the job has settled.
    strike();
    play(pick(3) == 0 ? up_to(300) : up_to(8'000));
    // The end of the training comes under fire too.
    if (i < settings_.faults * 4 / 5) continue;
    for (Agent& agent : agents_)
      if (agent.works >= 0 && !agent.finishes) agent.finishes = local(agent) + up_to(1'500);
  }
  settle();
  for (int i = 0; i < settings_.nodes && !fault_.empty(); ++i)
    if (agents_[i].alive) note(words(i));
  counts_.rounds = static_cast<int>(oracle_.last() + 1);
  counts_.restarts = oracle_.restarts();
  if (!oracle_.ended() && doomed_) counts_.doomed = 1;
  (oracle_.ended() ? counts_.ended : counts_.lost) = 1;
}

// Ends all faults. All nodes must then come to the same end.
void Storm::settle() {
  if (!fault_.empty()) return;
  note("the faults end");
  const Time faults_over = now_;
  const bool could_go_on = has_voters(false);
  if (heals_) heals_ = now_;
  for (int i = 0; i < settings_.nodes; ++i) {
    agents_[i].wakes = now_;
    agents_[i].slow_until = now_;
  }
  for (int i = 0; i < 200 && living() > 0 && fault_.empty(); ++i) {
    // Start nodes again: too few nodes would only wait for more.
    for (int node = 0; node < settings_.nodes && !oracle_.ended(); ++node)
      if (!agents_[node].alive) strike(Fault::back, node);
    play(1s);
    for (Agent& agent : agents_)
      if (agent.works == oracle_.last() && agent.works >= 0 && !agent.finishes)
        agent.finishes = local(agent) + up_to(3'000);
    // A node that came back may wait for a job that is over.
    if (std::none_of(agents_.begin(), agents_.end(), [](const Agent& agent) {
          return agent.alive && agent.witness->charter().term > 0;
        }))
      return judge_end(faults_over, could_go_on);
  }
  if (living() > 0) return wrong("the job neither goes on nor ends");
  judge_end(faults_over, could_go_on);
}

// Compares what the nodes have been told with the recorded end.
void Storm::judge_end(Time faults_over, bool could_go_on) {
  if (could_go_on && !oracle_.ended())
    wrong("the job is lost, and a quorum had a hub when the faults ended");
  if (oracle_.ended() && failures_.contains(oracle_.last()))
    wrong("a node fails that has finished the last round");
  if (!ended_at_) return;
  counts_.slowest = std::chrono::duration_cast<Ms>(now_ - std::max(*ended_at_, faults_over));
}

}  // namespace lockstep::rendezvous::hub::testing
