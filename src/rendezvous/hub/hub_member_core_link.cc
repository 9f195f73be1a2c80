// The member's connection: opened, watched, lost and opened again.
#include "rendezvous/hub/hub_member_core.h"

#include <fmt/core.h>

#include <errno.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::hub {

void HubMemberCore::connect(const std::string& place, io::TimePoint now) {
  place_ = place;
  phase_ = Phase::connecting;
  down_since_ = now;
  begin(now);
  const Ms patience = std::min(rules_.connect_timeout, time_to_join(now));
  join_until_ = now + patience;
  dial(patience, patience);
}

void HubMemberCore::forget_connect() {
  stop_dialing();
  if (phase_ == Phase::connecting) phase_ = Phase::idle;
}

void HubMemberCore::move_to(const std::string& place, io::TimePoint now) {
  // Already there; but after a failed search, search again even at the same place.
  if (place == place_ && !gone_) return;
  place_ = place;
  hang_up();
  down_since_ = now;
  if (!needs_link()) return;
  const bool first = phase_ == Phase::connecting && join_until_;
  const Ms patience =
      first ? std::max(std::chrono::ceil<Ms>(*join_until_ - now), Ms(1)) : time_to_join(now);
  dial(patience, patience);
}

void HubMemberCore::give_up(Error error) {
  if (!needs_link()) return;
  // Also leaves a hub of this node's own that has found no quorum.
  hang_up();
  stands_until_.reset();
  dial_failed(std::move(error));
}

void HubMemberCore::dial(Ms patience, Ms refused_patience) {
  gone_.reset();
  link_ = Link::dialing;
  steps_.emplace_back(Dial{patience, refused_patience});
}

void HubMemberCore::stop_dialing() {
  if (link_ != Link::dialing) return;
  link_ = Link::none;
  steps_.emplace_back(StopDialing{});
}

void HubMemberCore::hang_up() {
  next_beat_.reset();
  link_ = Link::none;
  steps_.emplace_back(HangUp{});
}

bool HubMemberCore::needs_link() const {
  return in_round() || phase_ == Phase::joining || phase_ == Phase::connecting;
}

bool HubMemberCore::awaits_hub() const {
  return phase_ == Phase::joining || phase_ == Phase::running || phase_ == Phase::finishing;
}

void HubMemberCore::connected(Ms heartbeat, Ms dead, std::uint64_t greeted, io::TimePoint now) {
  link_ = Link::up;
  heartbeat_ = heartbeat;
  dead_ = dead;
  messages_ += greeted;
  last_beat_ = now;
  next_beat_ = now + heartbeat_;
  // Silence counts from the greeting on.
  heard_ = watched_;
  down_since_.reset();
  linkless_until_.reset();
  // A hub that lets this node in may never come to lead, while the other nodes go on elsewhere.
  if (!rules_.succession) stands_until_.reset();
  if (phase_ == Phase::connecting) {
    phase_ = Phase::idle;
    outcomes_.emplace_back(Connected{});
    return;
  }
  // A failure counts only for a node that is in the round. So the join comes first: it puts this
  // node back into its round.
  const bool goes_on = phase_ == Phase::running || phase_ == Phase::finishing;
  if (failure_ || goes_on)
    send_join(phase_ == Phase::finishing ? Join::Holds::finished : Join::Holds::running, now);
  if (failure_) send(*failure_);
  if (phase_ == Phase::joining) send_join(Join::Holds::nothing, now);
}

void HubMemberCore::dial_failed(Error error) {
  link_ = Link::none;
  if (phase_ == Phase::connecting) {
    phase_ = Phase::idle;
    outcomes_.emplace_back(Connected{tl::make_unexpected(std::move(error))});
    return;
  }
  if (error.code == Errc::unavailable || error.code == Errc::timeout)
    error.message =
        fmt::format("the host of the rendezvous at {} is gone: {}", place_, error.message);
  gone_ = error;
  if (phase_ == Phase::joining) return end_join(tl::make_unexpected(std::move(error)));
  // The workers have ended well, and no hub is left to say more: end the barrier with the error.
  if (phase_ == Phase::finishing) {
    phase_ = Phase::running;
    outcomes_.emplace_back(AllFinished{tl::make_unexpected(std::move(error))});
    return;
  }
  interrupt(Interruption::Kind::end, error.message);
}

// Handles a broken or closed connection, or a silent hub.
void HubMemberCore::lost(const Error& error, io::TimePoint now) {
  const std::string text =
      fmt::format("lost the connection to the rendezvous at {}: {}", place_, error.message);
  hang_up();
  down_since_ = now;
  status_.clear();
  if (needs_link()) {
    dial(time_to_join(now), rules_.succession ? time_to_join(now) : rules_.lost_patience);
    if (rules_.succession) outcomes_.emplace_back(Unlinked{error});
  }
  if (phase_ == Phase::joining) linkless_until_ = now + time_to_join(now);
  if (reports_until_) end_reports({own_report_});
  if (phase_ == Phase::leaving) return end_leave();
  // A silent hub interrupts the round, because the other nodes may already have another round. A
  // closed connection does not: the next attempt shows whether the host is gone. Workers that have
  // ended well do not start again because of a silent hub.
  if (error.code == Errc::timeout && phase_ == Phase::running)
    interrupt(Interruption::Kind::rejoin, text);
  // A hub in between that only gathered does not prolong the time.
  if (rules_.succession && phase_ == Phase::running && !stands_until_)
    stands_until_ = now + rules_.lost_patience;
}

// --- time ---

// Returns how much of the time since the last beat counts. A longer gap means that this process was
// stopped while the hub's frames lay unread.
HubMemberCore::Ms HubMemberCore::unwatched(io::TimePoint now) const {
  const auto passed = std::chrono::duration_cast<Ms>(now - last_beat_);
  return passed > heartbeat_ * 3 / 2 ? heartbeat_ / 2 : std::max(passed, Ms(0));
}

void HubMemberCore::bytes_came(io::TimePoint now) {
  heard_ = watched_ + unwatched(now);
}

void HubMemberCore::beat(io::TimePoint now) {
  watched_ += unwatched(now);
  last_beat_ = now;
  if (watched_ - heard_ >= dead_) {
    // A host that was only frozen reads this frame when it wakes up.
    send(Leave{Leave::How::returns});
    return lost({Errc::timeout,
                 fmt::format("no sign of life for {:.1f} s",
                             std::chrono::duration<double>(watched_ - heard_).count()),
                 {},
                 ETIMEDOUT},
                now);
  }
  // Beats are not counted as messages.
  steps_.emplace_back(Send{Beat{}});
  // A hub whose silence lasts `dead_` before the next beat is not given the rest of that beat.
  next_beat_ = now + std::clamp(heard_ + dead_ - watched_, Ms(1), heartbeat_);
}

void HubMemberCore::tick(const std::string& waiting_for, io::TimePoint now) {
  const auto due = [now](const std::optional<io::TimePoint>& time) { return time && *time <= now; };
  if (due(next_beat_)) beat(now);
  if (due(reports_until_)) end_reports({own_report_});
  if (due(stands_until_)) {
    // The workers have run without a hub for too long: the nodes with a hub may have formed a
    // round.
    stands_until_.reset();
    if (phase_ == Phase::running)
      interrupt(Interruption::Kind::rejoin,
                fmt::format("the rendezvous has no host: {} is gone", place_));
  }
  if (due(leave_until_)) end_leave();
  if (due(linkless_until_)) {
    stop_dialing();
    end_join(fail(Errc::timeout, "joining timed out: " + waiting_for));
  }
}

std::optional<io::TimePoint> HubMemberCore::next_time() const {
  std::optional<io::TimePoint> next;
  for (const auto& time :
       {next_beat_, reports_until_, leave_until_, linkless_until_, stands_until_})
    if (time && (!next || *time < *next)) next = time;
  return next;
}

}  // namespace lockstep::rendezvous::hub
