// Rules of the older etcd rendezvous.
#include "rendezvous/etcd/etcd_legacy_member.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace lockstep::rendezvous::etcd {
namespace {

using Kind = LegacyStep::Kind;
using Status = LegacyState::Status;

// How often the last call renews the TTL of the round.
constexpr std::chrono::seconds kRefresh{5};
// How long to wait while a round is being set up or confirmed. Such a state moves on or expires
// soon.
constexpr std::chrono::seconds kPassing{1};
// How long to wait for survivors, which must first stop their workers.
constexpr std::chrono::seconds kPatience{40};

}  // namespace

void LegacyMember::begin(TimePoint now) {
  deadline_ = now + rules_.join_timeout;
  // This node must not recognise itself in the round that it leaves.
  if (phase_ == Phase::confirmed) left_ = version_;
  phase_ = phase_after_ = Phase::outside;
  announced_.clear();
  announced_after_.clear();
  responsible_ = false;
  spare_ = false;
}

LegacyStep LegacyMember::next(const std::optional<LegacyState>& seen, TimePoint now) {
  phase_after_ = phase_;
  announced_after_ = announced_;
  if (phase_ != Phase::outside && (!seen || seen->version != version_)) {
    // The round was abandoned.
    phase_ = phase_after_ = Phase::outside;
    responsible_ = false;
  }
  // Closed is final for the run id.
  if (seen && seen->status == Status::closed)
    return {.kind = spare_ ? Kind::released : Kind::closed};
  if (now >= deadline_ && !spare_) return {.kind = Kind::timed_out};
  if (spare_) {
    if (auto step = let_survivors_in(seen, now)) return std::move(*step);
  }
  if (!seen) return {.kind = Kind::create};
  switch (seen->status) {
    case Status::joinable:
      return at_joinable(*seen, now);
    case Status::frozen:
      recognise(*seen);
      if (phase_ == Phase::joined) return at_frozen(*seen);
      break;
    case Status::final:
      recognise(*seen);
      return at_final(*seen, now);
    case Status::setup:
    case Status::closed:
      break;
  }
  return watch(now + kPassing);
}

// Decides whether a spare may join. A spare takes the place of a lost node, not of a survivor that
// will join again. nullopt: the spare may join.
std::optional<LegacyStep> LegacyMember::let_survivors_in(const std::optional<LegacyState>& seen,
                                                         TimePoint now) {
  const bool open = !seen || seen->status == Status::setup || seen->status == Status::joinable;
  if (!open) return std::nullopt;
  if (!survivors_) return LegacyStep{.kind = Kind::count, .state = full_};
  const std::size_t joined = seen ? seen->participants : 0;
  if (joined < *survivors_ && now < patience_) return watch(patience_);
  spare_ = false;
  return std::nullopt;
}

void LegacyMember::lost(std::size_t nodes, TimePoint now) {
  survivors_ = full_.participants - std::min(nodes, full_.participants);
  patience_ = now + kPatience;
  deadline_ = now + rules_.join_timeout;
}

void LegacyMember::took_effect() {
  phase_ = phase_after_;
  announced_ = announced_after_;
}

// Finds this node in the state. If the answer to its own join was lost, the state still shows the
// join.
void LegacyMember::recognise(const LegacyState& seen) {
  const auto own = std::find_if(seen.agents.begin(), seen.agents.end(),
                                [this](const auto& entry) { return entry.second == self_; });
  if (own == seen.agents.end() || seen.version == left_ || phase_ != Phase::outside) return;
  version_ = seen.version;
  rank_ = own->first;
  phase_ = phase_after_ = Phase::joined;
}

LegacyStep LegacyMember::watch(TimePoint until) const {
  return {.kind = Kind::watch, .until = spare_ ? until : std::min(until, deadline_)};
}

LegacyStep LegacyMember::at_joinable(const LegacyState& seen, TimePoint now) {
  recognise(seen);
  if (phase_ == Phase::joined) {
    // torchrun's rule: the node that fills the minimum is responsible for the last call.
    if (rank_ + 1 == rules_.min_nodes && !std::exchange(responsible_, true)) {
      last_call_ = now + rules_.last_call_timeout;
      refresh_ = now + kRefresh;
    }
    return responsible_ ? last_call(seen, now) : watch(deadline_);
  }
  // Another node has a larger --nnodes.
  if (seen.participants >= rules_.max_nodes) return watch(now + kPassing);
  return join(seen);
}

LegacyStep LegacyMember::join(LegacyState state) {
  version_ = state.version;
  rank_ = state.participants++;
  state.agents[rank_] = self_;
  phase_after_ = Phase::joined;
  LegacyStep step{.kind = Kind::replace, .state = std::move(state)};
  if (step.state.participants == rules_.max_nodes) {
    step.state.status = Status::frozen;
    step.state.keep_alives.clear();
  }
  // From the minimum on the state has a TTL: if the responsible node dies, the round expires.
  if (step.state.participants >= rules_.min_nodes) step.ttl = kLegacyRoundTtl;
  return step;
}

// Runs the last call on the node that filled the minimum: waits for more nodes and renews the
// round's TTL.
LegacyStep LegacyMember::last_call(const LegacyState& seen, TimePoint now) {
  if (now < last_call_ && now < refresh_) return watch(std::min(last_call_, refresh_));
  LegacyStep step{.kind = Kind::replace, .state = seen, .ttl = kLegacyRoundTtl};
  refresh_ = now + kRefresh;
  if (now >= last_call_) {
    step.state.status = Status::frozen;
    step.state.keep_alives.clear();
  }
  return step;
}

LegacyStep LegacyMember::at_frozen(const LegacyState& seen) {
  const auto& leases = seen.keep_alives;
  if (std::find(leases.begin(), leases.end(), lease_key()) != leases.end()) {
    phase_ = phase_after_ = Phase::confirmed;
    return watch(deadline_);
  }
  phase_after_ = Phase::confirmed;
  LegacyStep step{.kind = Kind::claim, .state = seen, .ttl = kLegacyRoundTtl};
  step.state.keep_alives.push_back(lease_key());
  // The last node to confirm makes the round final, and removes the TTL.
  if (step.state.keep_alives.size() == step.state.participants) {
    step.state.status = Status::final;
    step.state.waiting = 0;
    step.ttl.reset();
  }
  return step;
}

LegacyStep LegacyMember::at_final(const LegacyState& seen, TimePoint now) {
  const auto& leases = seen.keep_alives;
  // The last condition guards against a tampered state.
  if (phase_ != Phase::outside && rank_ < seen.participants &&
      std::find(leases.begin(), leases.end(), lease_key()) != leases.end()) {
    phase_ = phase_after_ = Phase::confirmed;
    return {.kind = Kind::done, .state = seen};
  }
  const bool was_ours = seen.version == left_;
  // This node has left that round and comes back. Lockstep's agents notice that the round is
  // destroyed. torchrun's agents keep running unless they see a waiting node.
  if (was_ours && seen.all_ours()) return {.kind = Kind::destroy, .state = seen};
  const bool full = seen.participants >= rules_.max_nodes;
  // A spare must not announce itself to a full round: torchrun's agents would stop their workers in
  // vain.
  spare_ = full && !was_ours;
  if (spare_) {
    // The spare's join timeout starts when the round has ended.
    deadline_ = now + rules_.join_timeout;
    full_ = seen;
    survivors_.reset();
  }
  if (announced_ == seen.version || spare_) return {.kind = Kind::check, .state = seen};
  announced_after_ = seen.version;
  LegacyStep step{.kind = Kind::replace, .state = seen};
  ++step.state.waiting;
  return step;
}

std::string LegacyMember::folder_of(std::string_view version) const {
  return fmt::format("{}/rdzv/v_{}", folder_, version);
}

std::string LegacyMember::lease_key() const {
  return fmt::format("{}/rank_{}", folder_of(version_), rank_);
}

std::vector<std::size_t> missing_leases(const LegacyState& state,
                                        const std::vector<std::string>& keys) {
  const std::unordered_set<std::string> alive(keys.begin(), keys.end());
  std::vector<std::size_t> missing;
  for (const std::string& lease : state.keep_alives) {
    if (alive.contains(lease)) continue;
    const auto rank = parse_int(lease.substr(lease.rfind('_') + 1));
    missing.push_back(rank && *rank >= 0 ? static_cast<std::size_t>(*rank) : state.participants);
  }
  return missing;
}

}  // namespace lockstep::rendezvous::etcd
