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

void Coordinator::send(PeerId to, const Frame& frame, bool close) {
  output_.push_back({to, std::make_shared<const std::string>(frame_bytes(frame)), close});
}

void Coordinator::send_shared(PeerId to, const std::shared_ptr<const std::string>& bytes) {
  output_.push_back({to, bytes, false});
}

// --- time ---

Time Coordinator::next_time() const {
  Time next = next_beat_;
  if (last_call_until_) next = std::min(next, *last_call_until_);
  if (const auto until = reports_.until()) next = std::min(next, *until);
  if (const auto ends = adoption_ends()) next = std::min(next, *ends);
  return next;
}

// Returns how much of the time since the last tick counts. A gap of more than 1.5 heartbeats means
// that this process was stopped. Frames sent meanwhile lie unread in the sockets, so only half a
// heartbeat of the gap counts.
Ms Coordinator::unwatched(Time now) const {
  const Ms passed = std::chrono::duration_cast<Ms>(now - last_tick_);
  return passed > settings_.heartbeat * 3 / 2 ? settings_.heartbeat / 2 : std::max(passed, Ms(0));
}

void Coordinator::tick(Time now) {
  // watched_ first: the rules below measure silence on that clock.
  watched_ += unwatched(now);
  last_tick_ = now;
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
  std::vector<PeerId> silent;
  for (const auto& [peer, member] : members_) {
    if (watched_ - member.heard >= settings_.dead) silent.push_back(peer);
  }
  for (const PeerId peer : silent) {
    const auto at = members_.find(peer);
    if (at == members_.end()) continue;
    const std::string time = fmt::format("{:.1f} s", seconds(watched_ - at->second.heard));
    // The node may only have been frozen or cut off. It reads this frame when it wakes up.
    if (in_round(at->second))
      send(peer,
           Interrupted{current_->number, false,
                       "the other nodes took this node for gone: no sign of life for " + time});
    output_.push_back({peer, nullptr, true});
    lose(peer, "no sign of life for " + time, now);
  }
}

void Coordinator::expire(Time now) {
  for (auto at = away_.begin(); at != away_.end() && !over();) {
    if (now < at->second.until) {
      ++at;
      continue;
    }
    const std::string name = at->second.name;
    at = away_.erase(at);
    if (viable() < settings_.min_nodes)
      return missing_from_round(name + " is gone: it lost its connection and did not come back");
  }
  // A rank 0 that keeps silent about its store would block all other nodes.
  if (proposal_ && !proposal_->store && now >= proposal_->until) {
    const PeerId peer = proposal_->ranks.front();
    output_.push_back({peer, nullptr, true});
    lose(peer, "no answer to the request for the workers' store", now);
  }
  // A spare waits as long as the round runs.
  if (over() || running() || proposal_) return;
  for (auto& [peer, member] : members_) {
    if (member.stage != Stage::joined || member.offer.join_timeout_ms == 0) continue;
    // A spare's time starts when the round is over.
    const Time since = std::max(member.joined_at, forming_since_);
    const Ms allowed(member.offer.join_timeout_ms);
    if (now - since < allowed) continue;
    member.out_of_patience = fmt::format("joining the rendezvous '{}' timed out after {:.0f} s: {}",
                                         settings_.run_id, seconds(allowed), status());
    refuse(member, Why::timeout, member.out_of_patience, {});
  }
}

void Coordinator::beat() {
  const auto plain = std::make_shared<const std::string>(frame_bytes(Beat{}));
  const auto waiting = std::make_shared<const std::string>(frame_bytes(Beat{status()}));
  const auto done = std::make_shared<const std::string>(frame_bytes(Beat{barrier_status()}));
  for (const auto& [peer, member] : members_)
    send_shared(peer, member.stage == Stage::joined     ? waiting
                      : member.stage == Stage::finished ? done
                                                        : plain);
}

// --- words ---

// Returns the names of the nodes in one of the stages; of_round: only nodes with a rank.
std::string Coordinator::names(std::initializer_list<Stage> stages, bool of_round) const {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> some;
  std::size_t all = 0;
  for (const auto& [peer, member] : members_) {
    if (std::find(stages.begin(), stages.end(), member.stage) == stages.end() ||
        (of_round && member.rank < 0))
      continue;
    if (++all <= kMost) some.push_back(member.called());
  }
  std::string text = join(some, ", ");
  if (all > kMost) text += fmt::format(" and {} more", all - kMost);
  return text;
}

std::string Coordinator::status() const {
  if (over()) return why_over_;
  const std::size_t joined = count(Stage::joined);
  if (proposal_)
    return fmt::format("{} opens the workers' store for {} nodes",
                       members_.at(proposal_->ranks.front()).called(), proposal_->ranks.size());
  if (running())
    return fmt::format("round {} runs with {} nodes ({}){}", current_->number, current_->size,
                       names({Stage::placed, Stage::finished}, true), kSpareStatus);
  if (awaits_rejoin()) {
    std::vector<std::string> awaited;
    for (const Stage stage : {Stage::placed, Stage::finished}) {
      if (count(stage) > 0) awaited.push_back(names({stage}, true));
    }
    // An idle node of an adopted round may still be stopping its workers.
    if (current_->adopted && count(Stage::idle) > 0) awaited.push_back(names({Stage::idle}, false));
    for (const auto& [agent, away] : away_)
      awaited.push_back(away.name + " (lost its connection)");
    return fmt::format("waiting for {} to stop its workers and join again", join(awaited, ", "));
  }
  const std::string who = joined == 0 ? "" : " (" + names({Stage::joined}, false) + ")";
  if (joined < settings_.min_nodes) {
    const std::size_t missing = settings_.min_nodes - joined;
    return fmt::format("{} of {}{} nodes have joined{}, {} missing{}{}", joined,
                       settings_.min_nodes < settings_.max_nodes ? "at least " : "",
                       settings_.min_nodes, who, missing, absent(missing), wanted());
  }
  return fmt::format("{} nodes have joined{}, last call for up to {}", joined, who,
                     settings_.max_nodes);
}

// Returns whose place is free and how long the nodes wait for a replacement.
std::string Coordinator::wanted() const {
  if (!current_ || current_->lost.empty()) return {};
  constexpr std::size_t kMost = 4;
  std::vector<std::string> some = current_->lost;
  some.resize(std::min(some.size(), kMost));
  std::string text = ": a new node may replace a lost one (" + join(some, "; ");
  if (current_->lost.size() > kMost)
    text += fmt::format("; and {} more", current_->lost.size() - kMost);
  text += ")";
  Ms left{0};
  for (const auto& [peer, member] : members_) {
    if (member.stage != Stage::joined) continue;
    const auto until =
        std::max(member.joined_at, forming_since_) + Ms(member.offer.join_timeout_ms);
    left = std::max(left, std::chrono::duration_cast<Ms>(until - last_tick_));
  }
  return text + fmt::format(" for another {:.0f} s", seconds(left));
}

// Returns the missing nodes as " (n3, n4)", if the scheduler's names match the nodes' own names.
std::string Coordinator::absent(std::size_t count) const {
  // Compare up to the first dot: one side may use full names, the other short ones.
  const auto label = [](const std::string& name) { return name.substr(0, name.find('.')); };
  std::set<std::string> here;
  for (const auto& [peer, member] : members_) {
    if (member.stage == Stage::joined) here.insert(label(member.offer.host));
  }
  std::vector<std::string> missing;
  for (const std::string& name : settings_.expected) {
    if (!here.contains(label(name))) missing.push_back(name);
  }
  // Names that do not match would accuse the wrong nodes, so say nothing.
  if (missing.size() != count) return {};
  constexpr std::size_t kMost = 8;
  missing.resize(std::min(count, kMost));
  return fmt::format(" ({}{})", join(missing, ", "),
                     count > kMost ? fmt::format(" and {} more", count - kMost) : "");
}

std::string Coordinator::present() const {
  return names({Stage::idle, Stage::joined, Stage::placed, Stage::finished}, false);
}

// Returns the status for nodes whose workers have ended well.
std::string Coordinator::barrier_status() const {
  const std::size_t running_on = count(Stage::placed);
  if (!running() || running_on == 0) return {};
  return fmt::format("the workers of {} of {} nodes to end: {}", running_on, current_->size,
                     names({Stage::placed}, true));
}

// --- reports ---

void Coordinator::on_report(Member& member, TellReport tell, Time now) {
  if (member.rank < 0 || !current_) return;
  // This report comes too late: the answer was sent already.
  if (reports_.answer()) return send_shared(member.peer, reports_.answer());
  reports_.tell(member.rank, std::move(tell), now);
  if (reports_.complete(ranked_)) push_reports();
}

void Coordinator::push_reports() {
  const std::set<int> waiting = reports_.close();
  for (const auto& [peer, member] : members_) {
    if (waiting.contains(member.rank)) send_shared(peer, reports_.answer());
  }
}

}  // namespace lockstep::rendezvous::hub
