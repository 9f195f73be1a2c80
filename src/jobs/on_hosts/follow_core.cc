#include "jobs/on_hosts/follow_core.h"

#include "hosts/wait_words.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <signal.h>

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep::jobs::on_hosts {
namespace {

using std::chrono::seconds;
using Ms = FollowCore::Ms;
using Kind = FollowAction::Kind;

// A follower counts as back after this time, or with its first output, and the next pause is short
// again. Without this rule a follower killed at once by the host would be started 20 times a
// second.
constexpr seconds kSteady{2};
// A silent host gets this long once other hosts have recorded the end.
constexpr seconds kLastPatience{10};
constexpr seconds kLookAtLost{1};
constexpr seconds kAskIfGone{3};
constexpr int kStopsToLeave = 3;

// Returns how a user can end the waiting.
const char* stop_words(FollowOptions::OnStop on_stop) {
  switch (on_stop) {
    case FollowOptions::OnStop::cancel:
      return "Ctrl-C ends the job, a third Ctrl-C leaves the job alone";
    case FollowOptions::OnStop::interrupt_cancels:
      return "Ctrl-C ends the job, a third Ctrl-C closes this view";
    case FollowOptions::OnStop::leave:
      break;
  }
  return "Ctrl-C stops waiting, and the job goes on";
}

}  // namespace

FollowCore::FollowCore(Settings settings, Now now)
    : settings_(std::move(settings)),
      hosts_(settings_.hosts.size()),
      silence_(now.boot),
      silence_at_(now.steady) {
  for (Host& host : hosts_)
    host.since = now.steady;
}

FollowActions FollowCore::taken() {
  return std::exchange(actions_, {});
}

void FollowCore::say(std::string text) {
  actions_.push_back({.kind = Kind::say, .text = std::move(text)});
}

bool FollowCore::all(const std::function<bool(const Host&)>& fact) const {
  return std::all_of(hosts_.begin(), hosts_.end(), fact);
}

FollowActions FollowCore::start(Now now) {
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    open(i);
  notice_at_ = now.steady + hosts::next_notice({});
  look_at_silence(now);
  return taken();
}

// Repeat a cancellation on every new link: the last request may be lost with the old link.
void FollowCore::open(std::size_t node) {
  actions_.push_back({.kind = Kind::open, .node = node});
  if (stops_ > 0) actions_.push_back({.kind = Kind::cancel, .node = node, .count = stops_});
}

FollowActions FollowCore::on_started(std::size_t node, Now now) {
  if (hosts_[node].over) return {};
  hosts_[node].met = true;
  // A start is not yet a return: a host may accept the follower and kill it at once.
  hosts_[node].steady_at = now.steady + kSteady;
  look_at_silence(now);
  return taken();
}

FollowActions FollowCore::on_output(std::size_t node, Now now) {
  if (!hosts_[node].over) steady(node, now);
  return taken();
}

void FollowCore::steady(std::size_t node, Now now) {
  Host& host = hosts_[node];
  host.steady_at.reset();
  host.lost = false;  // `lockstep resume` has started this part again
  host.pauses.reset();
  // Say so only for a host whose absence was told.
  if (!std::exchange(host.away, false)) return;
  patience_at_.reset();
  say(settings_.hosts[node] + " is back");
  look_at_silence(now);
}

FollowActions FollowCore::on_follower_end(std::size_t node, int code, int signal, Now now) {
  Host& host = hosts_[node];
  if (host.over) return taken();
  host.steady_at.reset();
  host.clean = code == 0 && signal == 0;
  // The present output is complete. The job itself may go on.
  if (host.clean && !settings_.to_end) {
    over(node, now);
    return taken();
  }
  host.why_away = signal != 0 ? "its follower was ended by " + proc::signal_name(signal)
                              : fmt::format("its follower ended with exit code {}", code);
  // Only the job's record tells an ended job from a follower that was killed.
  actions_.push_back({.kind = Kind::ask, .node = node});
  return taken();
}

FollowActions FollowCore::on_record(std::size_t node, std::string_view text, Now now) {
  Host& host = hosts_[node];
  if (host.over) return taken();
  const std::string& name = settings_.hosts[node];
  auto told = parse_status(text);
  if (!told) {
    failed(node, name + ": " + host.why_away, now);
    return taken();
  }
  host.record = std::move(*told);
  if (!host.record) {
    lost(node, fmt::format("{}: no job {} is known there", name, settings_.job), now);
  } else if (host.record->state.stage == job::Stage::lost) {
    lost(node,
         fmt::format("{0}: its part of job {1} is lost; lockstep resume {1} starts it again", name,
                     settings_.job),
         now);
  } else if (host.record->state.stage == job::Stage::ended) {
    ended(node, now);
  } else {
    // The job still runs. outcome() must see only records of an end.
    host.record.reset();
    failed(node, name + ": " + host.why_away, now);
  }
  return taken();
}

// A killed follower may not have sent the last output of an ended job. Start another follower for
// the rest, unless that fails for 10 s.
void FollowCore::ended(std::size_t node, Now now) {
  Host& host = hosts_[node];
  if (host.clean) return over(node, now);
  if (!host.cut_since) host.cut_since = now.steady;
  const std::string why = settings_.hosts[node] + ": " + host.why_away;
  if (now.steady - *host.cut_since < kLastPatience) return failed(node, why, now);
  missing(node, why + "; the end of the job's output is missing here", now);
}

FollowActions FollowCore::on_failed(std::size_t node, const std::string& why, Now now) {
  failed(node, why, now);
  return taken();
}

void FollowCore::failed(std::size_t node, const std::string& why, Now now) {
  Host& host = hosts_[node];
  if (host.over || finishing_) return;
  if (!settings_.to_end && !host.met) return missing(node, why, now);
  host.why_away = why;
  host.steady_at.reset();
  if (!std::exchange(host.away, true)) {
    if (host.met) host.since = now.steady;
    say(why + "; the job needs no connection, trying again");
    notice_at_ = now.steady + hosts::next_notice({});
  }
  if (settings_.may_be_gone && !asking_gone_ && !gone_at_) gone_at_ = now.steady + kAskIfGone;
  // Back off: each new link may be a new log-in.
  host.reopen_at = now.steady + host.pauses.next();
  finish_if_over(now);
}

// A command that wants only the present output does not wait for a host that is off.
void FollowCore::missing(std::size_t node, const std::string& why, Now now) {
  say(why);
  followed_.missing.push_back(settings_.hosts[node]);
  over(node, now);
}

void FollowCore::over(std::size_t node, Now now) {
  Host& host = hosts_[node];
  host.over = true;
  host.reopen_at.reset();
  host.steady_at.reset();
  actions_.push_back({.kind = Kind::end_node, .node = node});
  finish_if_over(now);
}

// Ask a host with a lost part each second: the other nodes may be waiting for `lockstep resume`
// there.
void FollowCore::lost(std::size_t node, const std::string& why, Now now) {
  Host& host = hosts_[node];
  host.away = false;
  if (!std::exchange(host.lost, true) && hosts_.size() > 1) say(why);
  finish_if_over(now);
  if (!finishing_) host.reopen_at = now.steady + kLookAtLost;
}

// One host's record of the end speaks for hosts that stay away. Without any such record, the job
// may still run on a silent host.
void FollowCore::finish_if_over(Now now) {
  if (all([](const Host& each) { return each.over || each.lost; })) return finish();
  const bool told = !all([](const Host& each) { return !each.over; });
  if (told && !patience_at_ &&
      all([](const Host& each) { return each.over || each.lost || each.away; }))
    patience_at_ = now.steady + kLastPatience;
}

void FollowCore::give_up() {
  const std::optional<int> code = outcome().status.code;
  const std::string end = code ? fmt::format(", with exit code {}", *code) : "";
  for (const Host& host : hosts_)
    if (host.away && !host.over)
      say(fmt::format("{}; the host is taken for lost: the other hosts say that job {} has ended{}",
                      host.why_away, settings_.job, end));
  finish();
}

// Names the silent hosts, the time so far, and how to stop waiting. The first log-in counts too:
// ssh takes half a minute to fail on a host that is off.
void FollowCore::tell_waiting(Now now) {
  std::map<seconds, std::vector<std::pair<std::string, std::string>>> away;
  seconds longest{0};
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const Host& host = hosts_[i];
    if (host.over || (host.met && !host.away)) continue;
    const auto since = std::chrono::round<seconds>(now.steady - host.since);
    away[since].emplace_back(settings_.hosts[i], host.away ? "retrying" : settings_.doing(i));
    longest = std::max(longest, since);
  }
  const char* stop = stop_words(settings_.on_stop);
  for (const auto& [since, hosts] : away)
    for (const std::string& line : hosts::wait_lines(hosts, since))
      say(fmt::format("{}; {}", line, stop));
  notice_at_.reset();
  if (!away.empty()) notice_at_ = now.steady + hosts::next_notice(longest);
}

void FollowCore::look_at_silence(Now now) {
  const bool connected =
      all([](const Host& host) { return host.over || (host.met && !host.away); });
  silence_.on_tick(now.boot, connected);
  // The measure needs a look every few seconds, also without events.
  silence_at_ = now.steady + Silence::kTick;
}

FollowActions FollowCore::on_signal(int number, Now now) {
  (void)now;
  const bool asks = number == SIGINT || number == SIGTERM || number == SIGQUIT;
  if (number == SIGHUP || number == SIGPIPE) {
    // A closed terminal or pipe leaves the job running: only Ctrl-C and the like may cancel it.
    leave(number);
    return taken();
  }
  if (!asks) return {};
  using OnStop = FollowOptions::OnStop;
  const bool cancels = settings_.on_stop == OnStop::cancel ||
                       (settings_.on_stop == OnStop::interrupt_cancels && number == SIGINT);
  if (!cancels || ++stops_ >= kStopsToLeave) {
    leave(number);
    return taken();
  }
  // The terminal of a background process counts the third signal itself.
  const char* last =
      settings_.on_stop == OnStop::cancel ? "leaves the job alone" : "closes this view";
  say(fmt::format("{} came: the job is being stopped on {} {}; once more {}{}",
                  proc::signal_name(number), hosts_.size(), hosts_.size() == 1 ? "host" : "hosts",
                  stops_ > 1 ? "" : "hurries the end, a third time ", last));
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (!hosts_[i].over) actions_.push_back({.kind = Kind::cancel, .node = i, .count = stops_});
  return taken();
}

FollowActions FollowCore::on_gone(bool gone, Now now) {
  asking_gone_ = false;
  if (finishing_) return {};
  if (!gone) {
    // Ask again only after a pause: each question goes to the providers.
    gone_at_ = now.steady + kAskIfGone;
    return {};
  }
  followed_.gone = true;
  followed_.silent = silence_.lasted(now.boot);
  finish();
  return taken();
}

FollowActions FollowCore::tick(Now now) {
  if (finishing_) return {};
  const auto due = [&](Time& at) {
    if (!at || *at > now.steady) return false;
    at.reset();
    return true;
  };
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (due(hosts_[i].steady_at)) steady(i, now);
    if (due(hosts_[i].reopen_at)) open(i);
  }
  if (due(patience_at_)) give_up();
  if (!finishing_ && due(notice_at_)) tell_waiting(now);
  const bool is_any_away = !all([](const Host& host) { return !host.away || host.over; });
  if (!finishing_ && due(gone_at_) && is_any_away) {
    asking_gone_ = true;
    actions_.push_back({.kind = Kind::ask_gone});
  }
  if (now.steady >= silence_at_) look_at_silence(now);
  return taken();
}

io::TimePoint FollowCore::next_tick() const {
  if (finishing_) return io::TimePoint::max();
  io::TimePoint next = silence_at_;
  const auto consider = [&](const Time& at) {
    if (at) next = std::min(next, *at);
  };
  for (const Host& host : hosts_) {
    consider(host.reopen_at);
    consider(host.steady_at);
  }
  consider(patience_at_);
  consider(notice_at_);
  consider(gone_at_);
  return next;
}

void FollowCore::leave(int signal) {
  if (finishing_) return;
  followed_.left = true;
  followed_.signal = signal;
  finish();
}

void FollowCore::finish() {
  if (!std::exchange(finishing_, true)) actions_.push_back({.kind = Kind::finish});
}

Followed FollowCore::outcome() const {
  Followed followed = followed_;
  std::vector<std::optional<job::JobRecord>> records(hosts_.size());
  for (std::size_t i = 0; i < hosts_.size() && !followed.gone; ++i)
    records[i] = hosts_[i].record;
  followed.status = status_of(settings_.hosts, records);
  return followed;
}

}  // namespace lockstep::jobs::on_hosts
