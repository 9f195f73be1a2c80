#include "rendezvous/static_backend/static_member.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::static_backend {
namespace {

using Kind = StaticStep::Kind;
using RoundPhase = KeyValueRound::Phase;

// How long a leaving host stays for nodes that must read of the end.
constexpr std::chrono::seconds kFarewell{1};

bool active(RoundPhase round) {
  return round == RoundPhase::running || round == RoundPhase::barrier;
}

long seconds(io::Duration time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

}  // namespace

StaticMember::StaticMember(StaticRules rules)
    : rules_(std::move(rules)), pulses_(rules_.heartbeat_attempts) {}

bool StaticMember::joins(RoundPhase round) const {
  return phase_ == Phase::seeking || round == RoundPhase::agreeing;
}

std::string StaticMember::name(int node_rank) const {
  const auto rank = static_cast<std::size_t>(node_rank);
  if (rank >= names_.size() || names_[rank].empty()) return fmt::format("node {}", node_rank);
  return fmt::format("node {} ({})", node_rank, names_[rank]);
}

std::string StaticMember::patience() const {
  return fmt::format("no heartbeat for {} s",
                     seconds(rules_.heartbeat_interval * rules_.heartbeat_attempts));
}

std::optional<io::TimePoint> StaticMember::gives_up_at(RoundPhase round) const {
  // A lost store ends the join within moments, whatever the timeout.
  if (phase_ == Phase::lost || phase_ == Phase::losing || !joins(round)) return std::nullopt;
  return deadline_;
}

std::string StaticMember::departure_text(bool stopped) const {
  return fmt::format("node {} ({}) has left: it {}", rules_.node_rank, rules_.host,
                     stopped ? "was told to stop" : "could not start its workers");
}

// --- into a round ---

void StaticMember::opened(std::optional<std::int64_t> running) {
  phase_ = Phase::between;
  if (!running) return;
  // Node rank 0 writes the running round only if all agents are Lockstep's.
  all_ours_ = true;
  has_place_ = false;
  // The first round has no free places, so a newcomer seeks from round 1 on.
  next_ = std::max<std::int64_t>(*running, 1);
}

StaticSteps StaticMember::join(io::TimePoint now) {
  all_came_ = false;
  handed_out_ = false;
  // The store of a static job never comes back.
  if (lost_) return {{.kind = Kind::fail_join, .error = lost_}};
  deadline_ = now + rules_.timeout;
  return seek();
}

StaticSteps StaticMember::seek() {
  phase_ = Phase::meeting;
  // The first round begins when all nodes have come. With a torchrun agent there is no second one.
  if (next_ == 0 || !all_ours_) return {{.kind = Kind::agree, .round = next_}};
  if (hosts()) {
    for (const auto& [rank, why] : free_)
      pulses_.vacate(static_cast<std::size_t>(rank), next_);
    return {{.kind = Kind::open_round, .round = next_, .free = free_},
            {.kind = Kind::agree, .round = next_}};
  }
  phase_ = Phase::seeking;
  return {{.kind = Kind::find_round, .round = next_}};
}

StaticSteps StaticMember::round_found(const FreePlaces& free) {
  if (phase_ != Phase::seeking) return {};
  free_ = free;
  // The place may also belong to this node, which was given up but lives, or to a newcomer after a
  // failed claim.
  if (free.contains(rules_.node_rank)) return {{.kind = Kind::claim, .round = next_}};
  // A newcomer's place is taken in this round, so try the next one.
  if (!has_place_) {
    ++next_;
    return seek();
  }
  phase_ = Phase::meeting;
  return {{.kind = Kind::agree, .round = next_}};
}

StaticSteps StaticMember::claimed(bool won) {
  if (phase_ != Phase::seeking) return {};
  has_place_ = won;
  if (!won) {
    ++next_;
    return seek();
  }
  phase_ = Phase::meeting;
  // Heartbeats go to the key of this round. The predecessor's key must not speak for this node.
  since_ = next_;
  unanswered_ = 1;
  beats_ = true;
  return {{.kind = Kind::beat}, {.kind = Kind::agree, .round = next_}};
}

StaticSteps StaticMember::over_told(const OverNote& note) {
  if (phase_ != Phase::seeking && phase_ != Phase::meeting) return {};
  if (!note.next)
    return {{.kind = Kind::fail_join, .error = Error{Errc::unavailable, note.why, {}, 0}}};
  const std::int64_t round = next_++;
  // This node has not agreed to anything in the abandoned round.
  if (phase_ == Phase::seeking) return seek();
  return {{.kind = Kind::start_over, .round = round, .text = note.why}};
}

StaticSteps StaticMember::out_of_time() {
  if (phase_ != Phase::seeking) return {};
  const std::string waited = fmt::format(
      "timed out after {} s: ", std::chrono::ceil<std::chrono::seconds>(rules_.timeout).count());
  Error error{Errc::timeout, {}, {}, 0};
  if (has_place_) {
    error.message =
        waited + fmt::format("node rank 0 at {} has not begun the next round", rules_.store);
  } else {
    error.message = waited + fmt::format("the job at {} has a living node with node rank {}",
                                         rules_.store, rules_.node_rank);
    error.hint =
        "every node needs its own --node-rank, every job its own --master-port or --rdzv-id";
  }
  return {{.kind = Kind::fail_join, .error = std::move(error)}};
}

StaticStep StaticMember::over(const std::string& why) {
  told_over_ = true;
  return {.kind = Kind::say_over,
          .round = next_,
          .text = fmt::format("node 0 ({}) has given up: {}", rules_.host, why)};
}

StaticSteps StaticMember::ranks_failed(const Error& error) {
  Error told = error;
  if (hosts() && !free_.empty() && error.code == Errc::timeout) {
    std::string names;
    for (const auto& [rank, why] : free_)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name(rank));
    // Name the nodes without a replacement: they are the reason for the timeout.
    told.message =
        fmt::format("timed out after {} s: no other node has taken the place of {}",
                    std::chrono::ceil<std::chrono::seconds>(rules_.timeout).count(), names);
  }
  StaticSteps steps;
  if (hosts() && !told_over_) steps.push_back(over(told.message));
  steps.push_back({.kind = Kind::fail_join, .error = std::move(told)});
  return steps;
}

StaticSteps StaticMember::began(const Assignment& made, io::TimePoint now) {
  phase_ = Phase::meeting;
  ++next_;
  handed_out_ = false;
  overslept_ = false;
  last_beat_ = now;
  free_.clear();
  names_ = made.hosts;
  all_ours_ = std::find(made.ours.begin(), made.ours.end(), false) == made.ours.end();
  // torchrun's agents count no heartbeats, so none can be missed.
  if (!all_ours_) return {};
  pulses_.begin(made.ours.size());
  // Beats go on from the round before, or from a newcomer's claim.
  if (std::exchange(beats_, true)) return {};
  unanswered_ = 1;
  return {{.kind = Kind::beat}};
}

// --- who is there ---

// Counts beats and looks, not time: a node that was frozen has missed only one beat itself.
StaticSteps StaticMember::beat(const Around& around, const Counts& counts, io::TimePoint now) {
  note_sleep(now);
  if (unanswered_ >= rules_.heartbeat_attempts)
    return lose({Errc::unavailable, patience(), {}, 0}, true, now);
  // Each answer resets the count; see beat_answered().
  ++unanswered_;
  StaticSteps steps{{.kind = Kind::beat}};
  const bool watches = hosts() && (active(around.round) || joins(around.round));
  if (!watches) return steps;
  look(counts);
  std::vector<std::pair<int, std::string>> missing;
  for (std::size_t rank = 1; rank < pulses_.size(); ++rank) {
    const int node = static_cast<int>(rank);
    // A node that says goodbye while the others join is missing in the round being formed.
    if (joins(around.round) && pulses_.left(rank))
      missing.emplace_back(node, name(node) + " has left");
    else if (pulses_.silent(rank))
      missing.emplace_back(node, fmt::format("{} is gone ({})", name(node), patience()));
  }
  for (auto& step : miss(missing, around))
    steps.push_back(std::move(step));
  return steps;
}

// Records a long sleep. Called wherever a sleep may be noticed: the lost store may be found before
// the late beat.
void StaticMember::note_sleep(io::TimePoint now) {
  const io::Duration interval = rules_.heartbeat_interval;
  const auto nearly_silent =
      std::max(interval * rules_.heartbeat_attempts - interval / 2, interval + interval / 2);
  if (now - std::exchange(last_beat_, now) >= nearly_silent) overslept_ = true;
}

void StaticMember::look(const Counts& counts) {
  for (std::size_t rank = 1; rank < pulses_.size(); ++rank)
    pulses_.look(rank, counts(static_cast<int>(rank), pulses_.since(rank)));
}

// Handles missing nodes. Ranks are fixed, so no other node can fill in: there is no round until a
// replacement comes.
StaticSteps StaticMember::miss(const std::vector<std::pair<int, std::string>>& missing,
                               const Around& around) {
  // The ranks are handed out: the nodes will begin, so the round is judged while it runs.
  if (missing.empty() || (handed_out_ && !active(around.round))) return {};
  const auto& [node, why] = missing.front();
  const bool joining = joins(around.round);
  if (!around.awaits_replacement || !all_ours_) {
    if (joining)
      return {over(why), {.kind = Kind::fail_join, .error = Error{Errc::unavailable, why, {}, 0}}};
    return {{.kind = Kind::end_round, .node = node, .text = why}};
  }
  for (const auto& [rank, reason] : missing)
    vacate(rank, reason);
  if (!joining) return {{.kind = Kind::replace, .node = node, .text = why}};
  const std::int64_t round = next_++;
  return {{.kind = Kind::say_void, .round = round, .text = why},
          {.kind = Kind::start_over, .round = round, .text = why}};
}

void StaticMember::vacate(int node_rank, const std::string& why) {
  if (node_rank <= 0 || static_cast<std::size_t>(node_rank) >= pulses_.size()) return;
  pulses_.vacate(static_cast<std::size_t>(node_rank), next_);
  free_[node_rank] = why;
}

void StaticMember::told(const FailureRecord& record) {
  if (!record.gone) return;
  pulses_.gone(record.node);
  if (hosts() && !record.final && !free_.contains(record.node)) vacate(record.node, record.line);
}

// --- out of a round ---

StaticSteps StaticMember::barrier(const Result<void>& all) {
  if (all && all_ours_) {
    // This process may have been stopped while the other nodes gave this node up, or the other way
    // round. So the store decides, once for all nodes, whether the job has ended well.
    all_came_ = true;
    return {{.kind = Kind::conclude}};
  }
  if (all) return {{.kind = Kind::end_barrier}};
  if (all.error().code == Errc::timeout) return {{.kind = Kind::end_barrier, .error = all.error()}};
  // The store is lost: last_words_over() decides whether that is a good end.
  return {};
}

StaticSteps StaticMember::concluded() {
  return {{.kind = Kind::end_barrier}};
}

StaticSteps StaticMember::lose(const Error& error, bool silent, io::TimePoint now) {
  if (lost_) return {};
  note_sleep(now);
  lost_ = error;
  lost_->message =
      fmt::format("the store of node rank 0 at {} is lost: {}", rules_.store, error.message);
  // A silent host may only be frozen; a closed connection proves that its process is gone.
  silent_ = silent;
  beats_ = false;
  // Hear the last words of a stopped host first. After a freeze all unread messages are handled in
  // the same turn as the loss, so before last_words_over().
  return {{.kind = Kind::end_beats}, {.kind = Kind::hear_out}};
}

StaticSteps StaticMember::last_words_over(const Around& around) {
  if (phase_ >= Phase::lost) return {};
  const bool joining = joins(around.round);
  phase_ = Phase::lost;
  if (joining) return {{.kind = Kind::fail_join, .error = lost_}};
  // All nodes came to the barrier, so the host has left after a good end.
  if (all_came_) return {{.kind = Kind::end_barrier}};
  if (around.alarmed)
    return {{.kind = Kind::interrupt,
             .text = lost_->message + "; before the loss another node reported a failure"}};
  // In the barrier a closed connection may be the job's good end. That does not hold for a node
  // which the other nodes may have given up while it was frozen.
  if (around.round == RoundPhase::barrier && !silent_ && !overslept_)
    return {{.kind = Kind::end_barrier, .error = lost_}};
  if (!silent_ || !active(around.round)) return {{.kind = Kind::interrupt, .text = lost_->message}};
  // A host that was only frozen reads the record when it wakes up, and does not end well either.
  phase_ = Phase::losing;
  return {{.kind = Kind::say_farewell,
           .node = rules_.node_rank,
           .text = fmt::format("node {} ({}) has given up: {}", rules_.node_rank, rules_.host,
                               lost_->message),
           .final = true}};
}

StaticSteps StaticMember::farewell_said(bool ended_well) {
  if (phase_ != Phase::losing) return {};
  phase_ = Phase::lost;
  if (ended_well) return {{.kind = Kind::end_barrier}};
  return {{.kind = Kind::interrupt, .text = lost_->message}};
}

StaticStep StaticMember::departure(bool stopped, bool may_be_replaced) const {
  return {.kind = Kind::tell_gone,
          .node = rules_.node_rank,
          .text = departure_text(stopped),
          .final = !stopped || hosts() || !may_be_replaced};
}

StaticSteps StaticMember::tell_stop(const Around& around, bool was_active) {
  if (!all_ours_ || lost_ || !has_place_) return {};
  if (was_active) return {departure(true, around.awaits_replacement)};
  // Between two rounds: this node's departure prevents the next round.
  if (hosts()) return told_over_ ? StaticSteps{} : StaticSteps{over("it was told to stop")};
  beats_ = false;
  return {{.kind = Kind::end_beats}, {.kind = Kind::say_left}};
}

StaticSteps StaticMember::give_up_opening(const std::string& why, io::TimePoint now) {
  stay_until_ = now + kFarewell;
  return {over(why), {.kind = Kind::stay}};
}

StaticSteps StaticMember::leave(Departure how, const Around& around, bool was_active,
                                io::TimePoint now) {
  const bool stopped = how == Departure::stopped;
  StaticSteps steps;
  if (hosts() && joins(around.round) && !told_over_)
    steps.push_back(over(stopped ? "it was told to stop" : "it has failed"));
  const bool brief = stopped || told_over_;
  stay_until_ = now + (brief ? std::min<io::Duration>(kFarewell, rules_.close_timeout)
                             : rules_.close_timeout);
  phase_ = Phase::leaving;
  beats_ = false;
  steps.push_back({.kind = Kind::end_beats});
  if (!all_ours_ || lost_ || !has_place_) {
    for (auto& step : answered())
      steps.push_back(std::move(step));
    return steps;
  }
  // A node that fails in a round without having reported a failure could not start its workers.
  if (how != Departure::succeeded && was_active)
    steps.push_back(departure(stopped, around.awaits_replacement));
  else if (!hosts())
    steps.push_back({.kind = Kind::say_left});
  // The store ends with its host and answers in order. So an answer proves that all earlier
  // messages have arrived.
  steps.push_back({.kind = Kind::ask_and_leave});
  return steps;
}

StaticSteps StaticMember::answered() {
  if (phase_ != Phase::leaving) return {};
  phase_ = Phase::gone;
  return {{.kind = hosts() ? Kind::stay : Kind::go}};
}

}  // namespace lockstep::rendezvous::static_backend
