// Time, messages for people, and reports of the coordinator.
#include "base/text.h"
#include "rendezvous/hub/coordinator.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace lockstep::rendezvous::hub {
namespace {

double seconds(Ms time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

// --- time ---

Time Coordinator::next_time() const {
  Time next = next_beat_;
  if (last_call_until_) next = std::min(next, *last_call_until_);
  if (const auto until = reports_.until()) next = std::min(next, *until);
  if (const auto ends = adoption_ends()) next = std::min(next, *ends);
  return next;
}

void Coordinator::tick(Time now) {
  // First: the rules below measure silence on that clock.
  clock_.tick(now);
  if (reports_.until() && now >= *reports_.until()) push_reports();
  if (now >= next_beat_) {
    next_beat_ = now + settings_.heartbeat;
    watch_silence(now);
    expire(now);
    decide_held_joins(now);
    beat();
  }
  consider(now);
}

void Coordinator::watch_silence(Time now) {
  for (const PeerId peer : roster_.silent(clock_.at_tick(), settings_.dead)) {
    const Member* member = roster_.find(peer);
    if (member == nullptr) continue;
    const std::string time = fmt::format("{:.1f} s", seconds(clock_.at_tick() - member->heard));
    // The node may only have been frozen or cut off. It reads this frame when it wakes up.
    if (in_round(*member))
      outbox_.send(
          peer,
          Interrupted{current_->number(), false,
                      "the other nodes took this node for gone: no sign of life for " + time});
    outbox_.close(peer);
    lose(peer, "no sign of life for " + time, now);
  }
}

void Coordinator::expire(Time now) {
  while (const auto name = roster_.take_overdue(now)) {
    if (roster_.viable() < settings_.min_nodes)
      return missing_from_round(*name + " is gone: it lost its connection and did not come back");
  }
  // A rank 0 that keeps silent about its store would block all other nodes.
  if (proposal_ && !proposal_->store && now >= proposal_->until) {
    const PeerId peer = proposal_->ranks.front();
    outbox_.close(peer);
    lose(peer, "no answer to the request for the workers' store", now);
  }
  // A spare waits as long as the round runs.
  if (over() || running() || proposal_) return;
  for (Member* member : roster_.in(Stage::joined)) {
    if (member->offer.join_timeout_ms == 0) continue;
    // A spare's time starts when the round is over.
    const Time since = std::max(member->joined_at, forming_since_);
    const Ms allowed(member->offer.join_timeout_ms);
    if (now - since < allowed) continue;
    member->out_of_patience =
        fmt::format("joining the rendezvous '{}' timed out after {:.0f} s: {}", settings_.run_id,
                    seconds(allowed), status());
    refuse(*member, {Why::timeout, member->out_of_patience, {}});
  }
}

void Coordinator::beat() {
  const auto plain = Outbox::bytes_of(Beat{});
  const auto waiting = Outbox::bytes_of(Beat{status()});
  const auto done = Outbox::bytes_of(Beat{barrier_status()});
  for (const auto& [peer, member] : roster_.members())
    outbox_.send_shared(peer, member.stage() == Stage::joined     ? waiting
                              : member.stage() == Stage::finished ? done
                                                                  : plain);
}

// --- words ---

std::string Coordinator::status() const {
  if (over()) return why_over_;
  const std::size_t joined = roster_.count(Stage::joined);
  if (proposal_)
    return fmt::format("{} opens the workers' store for {} nodes",
                       roster_.at(proposal_->ranks.front()).called(), proposal_->ranks.size());
  if (running())
    return fmt::format("round {} runs with {} nodes ({}){}", current_->number(), current_->size(),
                       roster_.names({Stage::placed, Stage::finished}, true), kSpareStatus);
  if (current_ && current_->awaits_rejoin(roster_)) {
    std::vector<std::string> awaited;
    for (const Stage stage : {Stage::placed, Stage::finished}) {
      if (roster_.count(stage) > 0) awaited.push_back(roster_.names({stage}, true));
    }
    // An idle node of an adopted round may still be stopping its workers.
    if (current_->adopted() && roster_.count(Stage::idle) > 0)
      awaited.push_back(roster_.names({Stage::idle}, false));
    for (const std::string& name : roster_.away_names())
      awaited.push_back(name + " (lost its connection)");
    return fmt::format("waiting for {} to stop its workers and join again", join(awaited, ", "));
  }
  const std::string who = joined == 0 ? "" : " (" + roster_.names({Stage::joined}, false) + ")";
  if (joined < settings_.min_nodes) {
    const std::size_t missing = settings_.min_nodes - joined;
    return fmt::format("{} of {}{} nodes have joined{}, {} missing{}{}", joined,
                       settings_.min_nodes < settings_.max_nodes ? "at least " : "",
                       settings_.min_nodes, who, missing,
                       roster_.absent(settings_.expected, missing), wanted());
  }
  return fmt::format("{} nodes have joined{}, last call for up to {}", joined, who,
                     settings_.max_nodes);
}

// Returns whose place is free and how long the nodes wait for a replacement.
std::string Coordinator::wanted() const {
  if (!current_ || current_->lost().empty()) return {};
  constexpr std::size_t kMost = 4;
  std::vector<std::string> some = current_->lost();
  some.resize(std::min(some.size(), kMost));
  std::string text = ": a new node may replace a lost one (" + join(some, "; ");
  if (current_->lost().size() > kMost)
    text += fmt::format("; and {} more", current_->lost().size() - kMost);
  text += ")";
  Ms left{0};
  for (const Member* member : roster_.joined()) {
    const auto until =
        std::max(member->joined_at, forming_since_) + Ms(member->offer.join_timeout_ms);
    left = std::max(left, std::chrono::duration_cast<Ms>(until - clock_.last_tick()));
  }
  return text + fmt::format(" for another {:.0f} s", seconds(left));
}

std::string Coordinator::present() const {
  return roster_.names({Stage::idle, Stage::joined, Stage::placed, Stage::finished}, false);
}

// Returns the status for nodes whose workers have ended well.
std::string Coordinator::barrier_status() const {
  const std::size_t running_on = roster_.count(Stage::placed);
  if (!running() || running_on == 0) return {};
  return fmt::format("the workers of {} of {} nodes to end: {}", running_on, current_->size(),
                     roster_.names({Stage::placed}, true));
}

// --- reports ---

void Coordinator::on_report(Member& member, TellReport tell, Time now) {
  if (member.rank() < 0 || !current_) return;
  // This report comes too late: the answer was sent already.
  if (reports_.answer()) return outbox_.send_shared(member.peer, reports_.answer());
  reports_.tell(member.rank(), std::move(tell), now);
  if (reports_.complete(roster_.ranked())) push_reports();
}

void Coordinator::push_reports() {
  const std::set<int> waiting = reports_.close();
  for (const auto& [peer, member] : roster_.members()) {
    if (waiting.contains(member.rank())) outbox_.send_shared(peer, reports_.answer());
  }
}

}  // namespace lockstep::rendezvous::hub
