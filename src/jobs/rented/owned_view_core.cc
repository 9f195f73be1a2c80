#include "jobs/rented/owned_view_core.h"

#include "base/text.h"
#include "hosts/end_words.h"

#include <fmt/core.h>

#include <signal.h>

#include <algorithm>
#include <utility>

namespace lockstep::jobs::rented {
namespace {

using Kind = OwnedViewAction::Kind;
using End = link::ChannelEnd::Kind;
using std::chrono::milliseconds;

// A view that the host kills at once is not back. FollowCore has the same rule.
constexpr std::chrono::seconds kSteady{2};
constexpr Backoff::Rules kPauses{.first = milliseconds(50), .longest = milliseconds(5'000)};
constexpr std::size_t kMostWhy = 2000;
constexpr int kStopsToLeave = 3;
// Without a link the cancellation waits, and the user may not want to.
constexpr int kStopsToLeaveAway = 2;

}  // namespace

OwnedViewCore::OwnedViewCore(Settings settings)
    : settings_(std::move(settings)),
      pauses_(kPauses),
      stops_(settings_.canceled ? 1 : 0),
      untold_(stops_) {}

OwnedViewActions OwnedViewCore::taken() {
  return std::exchange(actions_, {});
}

void OwnedViewCore::say(std::string text) {
  actions_.push_back({.kind = Kind::say, .text = std::move(text)});
}

void OwnedViewCore::open() {
  running_ = false;
  untold_ = std::min(untold_, 1);  // a view cancels once
  opened_canceled_ = must_cancel();
  actions_.push_back({.kind = Kind::open});
}

void OwnedViewCore::finish() {
  reopen_at_.reset();
  steady_at_.reset();
  if (!std::exchange(finishing_, true)) actions_.push_back({.kind = Kind::finish});
}

OwnedViewActions OwnedViewCore::start(Time now) {
  (void)now;
  open();
  return taken();
}

OwnedViewActions OwnedViewCore::on_started(Time now) {
  if (finishing_) return {};
  running_ = true;
  settings_.met = true;
  if (away_since_) steady_at_ = now + kSteady;
  if (must_cancel() && !opened_canceled_) actions_.push_back({.kind = Kind::cancel});
  return taken();
}

void OwnedViewCore::steady() {
  steady_at_.reset();
  pauses_.reset();
  if (!away_since_ || finishing_) return;
  away_since_.reset();
  say(settings_.host + " is back");
}

OwnedViewActions OwnedViewCore::on_output() {
  steady();
  return taken();
}

void OwnedViewCore::on_told() {
  untold_ = std::max(untold_ - 1, 0);
}

OwnedViewActions OwnedViewCore::on_end(const link::ChannelEnd& end, Time now) {
  if (finishing_) return {};
  running_ = false;
  if (end.kind == End::exited) {
    steady();
    outcome_.code = end.code;
    finish();
    return taken();
  }
  // Ctrl-C has reached the process there before it handled signals. Open the view again, which
  // cancels the job.
  if (end.kind == End::signaled && end.code == SIGINT && must_cancel() && !opened_canceled_) {
    reopen_at_ = now;
    return {};
  }
  // A signal says nothing about the job: it may come from a shutdown, or lack of memory.
  const bool named = end.kind == End::lost;
  const std::string why =
      named ? end.why
            : fmt::format("{}: {}", settings_.host, hosts::end_words("the view there", end));
  // The host may have made the words.
  failed(printable(why, kMostWhy), now);
  return taken();
}

void OwnedViewCore::failed(const std::string& why, Time now) {
  steady_at_.reset();
  if (!settings_.met || (away_since_ && now - *away_since_ >= kPatience)) {
    outcome_.lost = why;
    return finish();
  }
  if (!away_since_) {
    away_since_ = now;
    say(fmt::format("{}; the job needs no connection, trying again for {} s", why,
                    kPatience.count()));
  }
  outcome_.lost = why;
  reopen_at_ = now + pauses_.next();
}

OwnedViewActions OwnedViewCore::on_signal(int number) {
  // A closed terminal says nothing about the job.
  const bool asks = number == SIGINT || number == SIGTERM || number == SIGQUIT;
  if (finishing_ || (!asks && number != SIGHUP)) return {};
  const bool leaves = !asks || settings_.on_stop == OnStop::leave;
  if (leaves || ++stops_ >= (running_ || !away_since_ ? kStopsToLeave : kStopsToLeaveAway)) {
    outcome_.signal = number;
    finish();
    return taken();
  }
  ++untold_;
  if (outcome_.canceled_by == 0) outcome_.canceled_by = number;
  if (!running_ && away_since_) {
    say(fmt::format("'{}' is canceled once {} is back; once more leaves the job alone",
                    settings_.cluster, settings_.host));
  } else if (stops_ == 1) {
    say(
        fmt::format("'{}' is being canceled; once more hurries the end, a third time leaves the "
                    "job alone",
                    settings_.cluster));
  }
  if (running_) actions_.push_back({.kind = Kind::cancel});
  return taken();
}

OwnedViewActions OwnedViewCore::tick(Time now) {
  if (finishing_) return {};
  if (steady_at_ && *steady_at_ <= now) steady();
  // A log-in that hangs must not outlast the patience.
  if (away_since_ && !running_ && now - *away_since_ >= kPatience) {
    finish();
  } else if (reopen_at_ && *reopen_at_ <= now) {
    reopen_at_.reset();
    open();
  }
  return taken();
}

OwnedViewCore::Time OwnedViewCore::next_tick() const {
  Time next = Time::max();
  if (finishing_) return next;
  if (reopen_at_) next = std::min(next, *reopen_at_);
  if (steady_at_) next = std::min(next, *steady_at_);
  if (away_since_ && !running_) next = std::min(next, *away_since_ + kPatience);
  return next;
}

}  // namespace lockstep::jobs::rented
