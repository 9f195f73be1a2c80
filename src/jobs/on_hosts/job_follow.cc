#include "jobs/on_hosts/job_follow.h"

#include "base/log.h"
#include "hosts/wait_words.h"
#include "io/open_files.h"
#include "io/own_stream.h"
#include "jobs/on_hosts/follow_output.h"
#include "jobs/on_hosts/silence.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace lockstep::jobs::on_hosts {
namespace {

using link::Stream;

constexpr std::uint32_t kFollow = 1;  // the channels of a link
constexpr std::uint32_t kRecord = 2;  // asks how the job stands; those behind it cancel
constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{5000};
// A follower that lives so long, or that passes on output, counts as back: the next pause is short.
constexpr std::chrono::seconds kSteady{2};
constexpr std::size_t kMostRecord = 1UL << 20;
// Once the other hosts have told the end, one that is away gets this long.
constexpr std::chrono::seconds kLastPatience{10};
constexpr std::chrono::seconds kLookAtLost{1};
constexpr std::chrono::seconds kAskIfGone{3};
constexpr std::size_t kFilesOfAHost = 12;
constexpr int kStopsToLeave = 3;

std::chrono::milliseconds since_boot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::duration_cast<std::chrono::milliseconds>(
                                                std::chrono::nanoseconds(now.tv_nsec));
}

class JobFollow {
 public:
  JobFollow(const FollowRequest& request, io::OwnStream out, io::OwnStream err)
      : request_(request),
        output_(loop_, request, std::move(out), std::move(err)),
        patience_(loop_),
        notice_(loop_),
        gone_timer_(loop_),
        silence_timer_(loop_) {}

  // from: of each host.
  Result<JobOutcome> run(const std::vector<OutputPlaces>& from);

 private:
  struct Host {
    explicit Host(io::Loop& loop) : turn(loop) {}
    std::unique_ptr<hosts::HostLink> link;
    std::int64_t out = 0;  // bytes that have come
    std::int64_t err = 0;
    bool over = false;  // the host's record says that the job has ended there
    bool clean = true;  // the last follower there passed on all output before it ended
    std::optional<io::TimePoint> cut_since;  // the first look at an ended job with output missing
    bool away = false;
    bool met = false;
    bool lost = false;  // its part of the job ended without a word; somebody may resume it
    std::string why_away;
    io::TimePoint since;  // when it was first asked, or went away
    std::string told;     // by the channel of the record, so far
    std::optional<job::JobRecord> record;
    std::chrono::milliseconds pause = kFirstPause;
    io::Timer turn;  // opens a new link, or calls the present one steady
  };

  void on_signal(int number);
  void open(std::size_t node);
  void on_frame(std::size_t node, const link::Frame& frame);
  void on_exit(std::size_t node, const link::Exit& exit);
  void on_started(std::size_t node);
  void on_data(std::size_t node, const link::Data& data);
  void on_output(std::size_t node, const link::Data& data);
  void on_failed(std::size_t node, const std::string& why);
  void on_record(std::size_t node);
  void on_end_of_job(std::size_t node);
  void on_over(std::size_t node);
  void on_missing(std::size_t node, const std::string& why);
  void on_steady(std::size_t node);
  void open_in(std::size_t node, std::chrono::milliseconds pause);
  void on_lost(std::size_t node, const std::string& why);
  void finish_if_over();
  void give_up();
  void tell_waiting();
  void cancel_on(std::size_t node);
  void leave(int signal);
  void finish();
  void ask_if_gone();
  bool any_away() const;
  void look_at_silence();

  const FollowRequest& request_;
  io::Loop loop_;
  std::vector<std::unique_ptr<Host>> hosts_;
  FollowOutput output_;
  std::unique_ptr<proc::SignalWatch> signals_;
  int stops_ = 0;
  bool finishing_ = false;
  JobOutcome outcome_;
  io::Timer patience_;
  io::Timer notice_;
  io::Timer gone_timer_;
  Silence silence_{since_boot()};
  io::Timer silence_timer_;
  std::jthread asking_;  // before the loop goes, it has ended
};

Result<JobOutcome> JobFollow::run(const std::vector<OutputPlaces>& from) {
  LOCKSTEP_TRY_ASSIGN(signals_,
                      proc::SignalWatch::open(loop_, [this](int number) { on_signal(number); }));
  for (std::size_t i = 0; i < request_.job.nodes.size(); ++i) {
    hosts_.push_back(std::make_unique<Host>(loop_));
    hosts_[i]->out = from[i].out;
    hosts_[i]->err = from[i].err;
    hosts_[i]->since = io::Clock::now();
  }
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    open(i);
  notice_.start(hosts::next_notice({}), [this] { tell_waiting(); });
  look_at_silence();
  loop_.run();
  outcome_.nodes.resize(hosts_.size());
  for (std::size_t i = 0; i < hosts_.size() && !outcome_.gone; ++i)
    outcome_.nodes[i] = std::move(hosts_[i]->record);
  return std::move(outcome_);
}

void JobFollow::on_signal(int number) {
  const bool asks = number == SIGINT || number == SIGTERM || number == SIGQUIT;
  if (number == SIGHUP) return leave(number);
  if (!asks) return;
  if (request_.on_stop == FollowRequest::OnStop::leave || ++stops_ >= kStopsToLeave)
    return leave(number);
  log::warning("{} came: the job is being stopped on {} {}{}", proc::signal_name(number),
               hosts_.size(), hosts_.size() == 1 ? "host" : "hosts",
               stops_ > 1 ? "; once more leaves it to itself"
                          : "; once more hurries it, a third time leaves it to itself");
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (!hosts_[i]->over) cancel_on(i);
}

void JobFollow::cancel_on(std::size_t node) {
  if (hosts_[node]->link)
    hosts_[node]->link->send(link::Start{.channel = kRecord + static_cast<std::uint32_t>(stops_),
                                         .argv = {"host-job", "cancel", request_.job.id},
                                         .own = true});
}

void JobFollow::open(std::size_t node) {
  Host& host = *hosts_[node];
  host.link = std::make_unique<hosts::HostLink>(
      loop_, hosts::HostLink::Settings{.place = request_.job.nodes[node]},
      hosts::HostLink::Events{[this, node](const link::Frame& frame) { on_frame(node, frame); },
                              [this, node](const std::string& why) { on_failed(node, why); }});
  host.link->send(
      link::Start{.channel = kFollow,
                  .argv = {"host-job", request_.to_end ? "follow" : "print", request_.job.id,
                           std::to_string(host.out), std::to_string(host.err)},
                  .own = true});
  if (stops_ > 0) cancel_on(node);
}

void JobFollow::on_frame(std::size_t node, const link::Frame& frame) {
  if (hosts_[node]->over) return;
  if (const auto* data = std::get_if<link::Data>(&frame)) return on_data(node, *data);
  if (const auto* started = std::get_if<link::Started>(&frame))
    if (started->channel == kFollow) return on_started(node);
  if (const auto* refused = std::get_if<link::Refused>(&frame))
    return on_failed(node, request_.job.nodes[node].name + ": " + refused->why);
  if (const auto* exit = std::get_if<link::Exit>(&frame)) on_exit(node, *exit);
}

// A follower's end says nothing about the job: the host's memory may have run out, or somebody has
// stopped the link there. Only the record that the job's supervisor wrote tells.
void JobFollow::on_exit(std::size_t node, const link::Exit& exit) {
  Host& host = *hosts_[node];
  if (exit.channel == kRecord) return on_record(node);
  if (exit.channel != kFollow) return;
  host.clean = exit.code == 0 && exit.signal == 0;
  if (host.clean && !request_.to_end) return on_over(node);
  host.why_away = exit.signal != 0 ? "its follower was ended by " + proc::signal_name(exit.signal)
                                   : fmt::format("its follower ended with exit code {}", exit.code);
  host.told.clear();
  host.link->send(link::Start{
      .channel = kRecord, .argv = {"host-job", "status", request_.job.id}, .own = true});
}

void JobFollow::on_record(std::size_t node) {
  Host& host = *hosts_[node];
  const std::string& name = request_.job.nodes[node].name;
  auto told = jobs::parse_status(host.told);
  if (!told) return on_failed(node, name + ": " + host.why_away);
  host.record = std::move(*told);
  if (!host.record)
    return on_lost(node, fmt::format("{}: no job {} is known there", name, request_.job.id));
  if (host.record->state.stage == job::Stage::lost)
    return on_lost(node, fmt::format("{}: its part of job {} ended without a word; lockstep resume "
                                     "{} starts it again",
                                     name, request_.job.id, request_.job.id));
  if (host.record->state.stage == job::Stage::ended) return on_end_of_job(node);
  host.record.reset();
  on_failed(node, name + ": " + host.why_away);
}

// A follower that was killed may not have passed on the last output of a job that has ended.
// Another follower brings the rest, unless none can.
void JobFollow::on_end_of_job(std::size_t node) {
  Host& host = *hosts_[node];
  if (host.clean) return on_over(node);
  if (!host.cut_since) host.cut_since = io::Clock::now();
  const std::string why = request_.job.nodes[node].name + ": " + host.why_away;
  if (io::Clock::now() - *host.cut_since < kLastPatience) return on_failed(node, why);
  on_missing(node, why + "; the end of the job's output is missing here");
}

void JobFollow::on_started(std::size_t node) {
  hosts_[node]->met = true;
  hosts_[node]->turn.start(kSteady, [this, node] { on_steady(node); });
  look_at_silence();
}

void JobFollow::on_steady(std::size_t node) {
  Host& host = *hosts_[node];
  host.turn.cancel();
  host.lost = false;  // `lockstep resume` began the part of this host again
  host.pause = kFirstPause;
  if (!std::exchange(host.away, false)) return;
  patience_.cancel();
  log::warning("{} is back", request_.job.nodes[node].name);
  look_at_silence();
}

void JobFollow::on_data(std::size_t node, const link::Data& data) {
  Host& host = *hosts_[node];
  if (data.channel == kFollow) return on_output(node, data);
  if (data.channel == kRecord && data.stream == Stream::out &&
      host.told.size() + data.bytes.size() <= kMostRecord)
    host.told += data.bytes;
  host.link->send(
      link::Credit{data.channel, data.stream, static_cast<std::uint32_t>(data.bytes.size())});
}

void JobFollow::on_output(std::size_t node, const link::Data& data) {
  Host& host = *hosts_[node];
  on_steady(node);
  const bool out = data.stream == Stream::out;
  (out ? host.out : host.err) += static_cast<std::int64_t>(data.bytes.size());
  // The link may be another one by the time it is printed.
  const auto printed = [this, node, link = host.link.get(),
                        stream = data.stream](std::size_t bytes) {
    if (hosts_[node]->link.get() == link && link != nullptr && bytes > 0)
      link->send(link::Credit{kFollow, stream, static_cast<std::uint32_t>(bytes)});
  };
  output_.put(node, data.stream, data.bytes, printed);
}

void JobFollow::on_failed(std::size_t node, const std::string& why) {
  Host& host = *hosts_[node];
  if (host.over || finishing_) return;
  if (!request_.to_end && !host.met) return on_missing(node, why);
  host.why_away = why;
  if (!std::exchange(host.away, true)) {
    if (host.met) host.since = io::Clock::now();
    log::warning("{}; the job needs no connection, trying again", why);
    notice_.start(hosts::next_notice({}), [this] { tell_waiting(); });
  }
  if (request_.gone && !asking_.joinable() && !gone_timer_.active())
    gone_timer_.start(kAskIfGone, [this] { ask_if_gone(); });
  open_in(node, host.pause);
  host.pause = std::min(2 * host.pause, kLongestPause);
  finish_if_over();
}

// Who asks for what there is now does not wait for a host that is off.
void JobFollow::on_missing(std::size_t node, const std::string& why) {
  log::warning("{}", why);
  outcome_.missing.push_back(request_.job.nodes[node].name);
  on_over(node);
}

// Not inside a callback of the link itself.
void JobFollow::open_in(std::size_t node, std::chrono::milliseconds pause) {
  hosts_[node]->turn.start(pause, [this, node] {
    hosts_[node]->link.reset();
    open(node);
  });
}

void JobFollow::on_over(std::size_t node) {
  Host& host = *hosts_[node];
  host.over = true;
  host.turn.cancel();
  output_.end(node);
  finish_if_over();
}

// The other nodes may wait for it to come back.
void JobFollow::on_lost(std::size_t node, const std::string& why) {
  Host& host = *hosts_[node];
  host.away = false;
  if (!std::exchange(host.lost, true) && hosts_.size() > 1) log::warning("{}", why);
  finish_if_over();
  if (!finishing_) open_in(node, kLookAtLost);
}

// One host's record of the end speaks for hosts that stay away. Without any, the job may still run
// on such a host.
void JobFollow::finish_if_over() {
  const auto all = [this](auto fact) {
    return std::all_of(hosts_.begin(), hosts_.end(), [&](const auto& each) { return fact(*each); });
  };
  if (all([](const Host& each) { return each.over || each.lost; })) return finish();
  const bool told = !all([](const Host& each) { return !each.over; });
  if (told && !patience_.active() &&
      all([](const Host& each) { return each.over || each.lost || each.away; }))
    patience_.start(kLastPatience, [this] { give_up(); });
}

void JobFollow::give_up() {
  for (const auto& host : hosts_)
    if (host->away && !host->over)
      log::warning("{}; the other hosts say that job {} has ended", host->why_away,
                   request_.job.id);
  finish();
}

// Names the hosts that are waited for, for how long, and how to stop that. The first log-in counts
// too: a host that is off takes half a minute to fail.
void JobFollow::tell_waiting() {
  using std::chrono::seconds;
  if (finishing_) return;
  std::map<seconds, std::vector<std::pair<std::string, std::string>>> away;
  seconds longest{0};
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const Host& host = *hosts_[i];
    if (host.over || (host.met && !host.away)) continue;
    const auto since = std::chrono::round<seconds>(io::Clock::now() - host.since);
    away[since].emplace_back(request_.job.nodes[i].name,
                             host.away ? "it is tried again and again" : host.link->doing());
    longest = std::max(longest, since);
  }
  const char* stop = request_.on_stop == FollowRequest::OnStop::cancel
                         ? "Ctrl-C ends the job, a third one leaves it to itself"
                         : "Ctrl-C stops waiting, and the job goes on";
  for (const auto& [since, hosts] : away)
    for (const std::string& line : hosts::wait_lines(hosts, since))
      log::warning("{}; {}", line, stop);
  if (!away.empty()) notice_.start(hosts::next_notice(longest), [this] { tell_waiting(); });
}

bool JobFollow::any_away() const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [](const auto& host) { return host->away && !host->over; });
}

void JobFollow::look_at_silence() {
  const bool met = std::all_of(hosts_.begin(), hosts_.end(),
                               [](const auto& host) { return host->met || host->over; });
  silence_.on_tick(since_boot(), met && !any_away());
  silence_timer_.start(Silence::kTick, [this] { look_at_silence(); });
}

void JobFollow::ask_if_gone() {
  if (!any_away() || finishing_) return;
  asking_ = std::jthread([this] {
    const bool gone = request_.gone();
    loop_.post([this, gone] {
      asking_.join();
      if (!gone) return gone_timer_.start(kAskIfGone, [this] { ask_if_gone(); });
      outcome_.gone = true;
      outcome_.silent = silence_.lasted(since_boot());
      finish();
    });
  });
}

void JobFollow::leave(int signal) {
  outcome_.left = true;
  outcome_.signal = signal;
  finish();
}

void JobFollow::finish() {
  if (std::exchange(finishing_, true)) return;
  output_.finish([this] { loop_.stop(); });
}

}  // namespace

Result<JobOutcome> follow_job(const FollowRequest& request) {
  LOCKSTEP_TRY(io::check_open_files(kFilesOfAHost * (request.job.nodes.size() + 1)));
  io::raise_open_files_limit();
  LOCKSTEP_TRY_ASSIGN(const auto places, first_places(request));
  LOCKSTEP_TRY_ASSIGN(io::OwnStream out,
                      io::OwnStream::open(STDOUT_FILENO, io::OwnStream::Way::write));
  LOCKSTEP_TRY_ASSIGN(io::OwnStream err,
                      io::OwnStream::open(STDERR_FILENO, io::OwnStream::Way::write));
  JobOutcome outcome;
  {
    JobFollow follow(request, std::move(out), std::move(err));
    LOCKSTEP_TRY_ASSIGN(outcome, follow.run(places));
  }
  return outcome;
}

}  // namespace lockstep::jobs::on_hosts
