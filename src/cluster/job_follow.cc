#include "cluster/job_follow.h"

#include "base/log.h"
#include "cluster/command_run.h"
#include "cluster/folded_hosts.h"
#include "cluster/host_output.h"
#include "cluster/silence.h"
#include "io/open_files.h"
#include "io/own_stream.h"
#include "job/job_requests.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace lockstep::cluster {
namespace {

using link::Stream;

constexpr std::uint32_t kFollow = 1;  // the channel; those behind it cancel
constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{5000};
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
        out_(loop_, std::move(out), line_text()),
        err_(loop_, std::move(err), line_text()),
        patience_(loop_),
        gone_timer_(loop_),
        silence_timer_(loop_) {
    if (request.fold && !request.json && !request.rank) folded_.emplace(loop_, out_);
  }

  // from: of each host.
  Result<JobOutcome> run(const std::vector<std::pair<std::int64_t, std::int64_t>>& from);

 private:
  struct Host {
    explicit Host(io::Loop& loop) : retry(loop) {}
    std::unique_ptr<HostLink> link;
    std::string out_prefix;
    std::string err_prefix;
    std::int64_t out = 0;  // bytes that have come
    std::int64_t err = 0;
    bool over = false;
    bool away = false;
    bool met = false;
    bool lost = false;  // its part of the job ended without a word; somebody may resume it
    std::chrono::milliseconds pause = kFirstPause;
    io::Timer retry;
  };

  HostOutput::LineText line_text() const;
  void name_lines(std::size_t node);
  HostOutput& output_of(Stream stream);
  void on_signal(int number);
  void open(std::size_t node);
  void on_frame(std::size_t node, const link::Frame& frame);
  void on_started(std::size_t node);
  void on_data(std::size_t node, const link::Data& data);
  void on_failed(std::size_t node, const std::string& why);
  void on_over(std::size_t node);
  void print_rests(const Host& host);
  void on_lost(std::size_t node);
  void finish_if_over();
  void cancel_on(std::size_t node);
  void leave(int signal);
  void finish();
  void ask_if_gone();
  bool any_away() const;
  void look_at_silence();

  const FollowRequest& request_;
  io::Loop loop_;
  std::vector<std::unique_ptr<Host>> hosts_;
  HostOutput out_;
  HostOutput err_;
  std::optional<FoldedHosts> folded_;  // in front of out_
  std::unique_ptr<proc::SignalWatch> signals_;
  int stops_ = 0;
  bool finishing_ = false;
  JobOutcome outcome_;
  io::Timer patience_;
  io::Timer gone_timer_;
  Silence silence_{since_boot()};
  io::Timer silence_timer_;
  std::jthread asking_;  // before the loop goes, it has ended
};

Result<JobOutcome> JobFollow::run(const std::vector<std::pair<std::int64_t, std::int64_t>>& from) {
  LOCKSTEP_TRY_ASSIGN(signals_,
                      proc::SignalWatch::open(loop_, [this](int number) { on_signal(number); }));
  for (std::size_t i = 0; i < request_.job.nodes.size(); ++i) {
    hosts_.push_back(std::make_unique<Host>(loop_));
    hosts_[i]->out = from[i].first;
    hosts_[i]->err = from[i].second;
    name_lines(i);
  }
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    open(i);
  look_at_silence();
  loop_.run();
  return std::move(outcome_);
}

HostOutput::LineText JobFollow::line_text() const {
  if (!request_.rank && !request_.json) return {};
  const std::string prefix = request_.rank ? rank_prefix(*request_.rank) : "";
  return [prefix, json = request_.json](std::string_view line) {
    if (!line.starts_with(prefix)) return std::string();
    return json ? log_line_rest(line) : std::string(line);
  };
}

void JobFollow::name_lines(std::size_t node) {
  Host& host = *hosts_[node];
  const std::string& name = request_.job.nodes[node].name;
  if (request_.json) {
    host.out_prefix = log_line_head(name, "stdout");
    host.err_prefix = log_line_head(name, "stderr");
  } else if (request_.job.nodes.size() > 1) {
    host.out_prefix = host.err_prefix = name + ": ";
  }
}

// Objects of both outputs go to stdout, whole.
HostOutput& JobFollow::output_of(Stream stream) {
  return stream == Stream::out || request_.json ? out_ : err_;
}

void JobFollow::on_signal(int number) {
  const bool asks = number == SIGINT || number == SIGTERM || number == SIGQUIT;
  if (number == SIGHUP) return leave(number);
  if (!asks) return;
  if (request_.on_stop == FollowRequest::OnStop::leave || ++stops_ >= kStopsToLeave)
    return leave(number);
  log::warning("{} came: the job is being stopped on {} {}{}", proc::signal_name(number),
               hosts_.size(), hosts_.size() == 1 ? "host" : "hosts",
               stops_ > 1 ? "; once more leaves it to itself" : "");
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (!hosts_[i]->over) cancel_on(i);
}

void JobFollow::cancel_on(std::size_t node) {
  if (hosts_[node]->link)
    hosts_[node]->link->send(link::Start{.channel = kFollow + static_cast<std::uint32_t>(stops_),
                                         .argv = {"host-job", "cancel", request_.job.id},
                                         .own = true});
}

void JobFollow::open(std::size_t node) {
  Host& host = *hosts_[node];
  host.link = std::make_unique<HostLink>(
      loop_, HostLink::Settings{.place = request_.job.nodes[node]},
      HostLink::Events{[this, node](const link::Frame& frame) { on_frame(node, frame); },
                       [this, node](const std::string& why) { on_failed(node, why); }});
  host.link->send(
      link::Start{.channel = kFollow,
                  .argv = {"host-job", request_.to_end ? "follow" : "print", request_.job.id,
                           std::to_string(host.out), std::to_string(host.err)},
                  .own = true});
  if (stops_ > 0) cancel_on(node);
}

void JobFollow::on_frame(std::size_t node, const link::Frame& frame) {
  Host& host = *hosts_[node];
  if (host.over) return;
  if (const auto* data = std::get_if<link::Data>(&frame)) return on_data(node, *data);
  if (std::holds_alternative<link::Started>(frame)) on_started(node);
  if (const auto* refused = std::get_if<link::Refused>(&frame))
    return on_failed(node, request_.job.nodes[node].name + ": " + refused->why);
  const auto* exit = std::get_if<link::Exit>(&frame);
  if (exit == nullptr || exit->channel != kFollow) return;
  exit->code == job::kLost&& request_.to_end ? on_lost(node) : on_over(node);
}

void JobFollow::on_started(std::size_t node) {
  Host& host = *hosts_[node];
  host.met = true;
  if (std::exchange(host.away, false)) {
    host.pause = kFirstPause;
    patience_.cancel();
    log::warning("{} is back", request_.job.nodes[node].name);
  }
  look_at_silence();
}

void JobFollow::on_data(std::size_t node, const link::Data& data) {
  Host& host = *hosts_[node];
  const auto size = static_cast<std::uint32_t>(data.bytes.size());
  if (data.channel != kFollow) {
    host.link->send(link::Credit{data.channel, data.stream, size});
    return;
  }
  host.lost = false;  // it goes on: somebody has resumed it
  const bool out = data.stream == Stream::out;
  (out ? host.out : host.err) += size;
  // The link may be another one by the time it is printed.
  const auto printed = [this, node, link = host.link.get(),
                        stream = data.stream](std::size_t bytes) {
    if (hosts_[node]->link.get() == link && link != nullptr && bytes > 0)
      link->send(link::Credit{kFollow, stream, static_cast<std::uint32_t>(bytes)});
  };
  if (out && folded_) return folded_->put(host.out_prefix, data.bytes, printed);
  output_of(data.stream).put(out ? host.out_prefix : host.err_prefix, data.bytes, printed);
}

void JobFollow::on_failed(std::size_t node, const std::string& why) {
  Host& host = *hosts_[node];
  if (host.over || finishing_) return;
  if (!std::exchange(host.away, true)) log::warning("{}; the job goes on there, trying again", why);
  if (request_.gone && !asking_.joinable() && !gone_timer_.active())
    gone_timer_.start(kAskIfGone, [this] { ask_if_gone(); });
  // Not inside a callback of the link itself.
  host.retry.start(host.pause, [this, node] {
    hosts_[node]->link.reset();
    open(node);
  });
  host.pause = std::min(2 * host.pause, kLongestPause);
}

void JobFollow::on_over(std::size_t node) {
  Host& host = *hosts_[node];
  host.over = true;
  print_rests(host);
  finish_if_over();
}

// What stands without an end of line.
void JobFollow::print_rests(const Host& host) {
  if (folded_) folded_->end(host.out_prefix);
  output_of(Stream::out).end(host.out_prefix);
  output_of(Stream::err).end(host.err_prefix);
}

// The other nodes may wait for it to come back.
void JobFollow::on_lost(std::size_t node) {
  Host& host = *hosts_[node];
  if (!std::exchange(host.lost, true) && hosts_.size() > 1)
    log::warning("{}: its part of job {} ended without a word; lockstep resume {} starts it again",
                 request_.job.nodes[node].name, request_.job.id, request_.job.id);
  finish_if_over();
  if (finishing_) return;
  host.retry.start(kLookAtLost, [this, node] {
    hosts_[node]->link.reset();
    open(node);
  });
}

void JobFollow::finish_if_over() {
  const auto all = [this](auto fact) {
    return std::all_of(hosts_.begin(), hosts_.end(), [&](const auto& each) { return fact(*each); });
  };
  if (all([](const Host& each) { return each.over || each.lost; })) return finish();
  if (all([](const Host& each) { return each.over || each.lost || each.away; }))
    patience_.start(kLastPatience, [this] { finish(); });
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
  for (const auto& host : hosts_)
    print_rests(*host);
  if (folded_) folded_->finish();
  out_.when_idle([this] { err_.when_idle([this] { loop_.stop(); }); });
}

std::int64_t place_in(const nlohmann::json& answer, const char* name) {
  if (!answer.is_object()) return 0;
  const auto at = answer.find(name);
  return at != answer.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

// Where to begin on each host.
Result<std::vector<std::pair<std::int64_t, std::int64_t>>> places_of(const FollowRequest& request) {
  constexpr std::int64_t kBehindAll = std::numeric_limits<std::int64_t>::max() / 2;
  const std::size_t count = request.job.nodes.size();
  std::vector<std::pair<std::int64_t, std::int64_t>> places(count);
  if (!request.print) return decltype(places)(count, {kBehindAll, kBehindAll});
  if (!request.lines) return places;
  LOCKSTEP_TRY_ASSIGN(
      const auto endings,
      run_command({.hosts = request.job.nodes,
                   .argv = {"host-job", "places", request.job.id, std::to_string(*request.lines)},
                   .own_binary = true,
                   .input = CommandRequest::Input::none,
                   .output = CommandRequest::Output::keep}));
  for (std::size_t i = 0; i < count; ++i) {
    const nlohmann::json answer = codec::parse_json(endings[i].out);
    places[i] = {place_in(answer, "out"), place_in(answer, "err")};
  }
  return places;
}

}  // namespace

Result<JobOutcome> follow_job(const FollowRequest& request) {
  LOCKSTEP_TRY(io::check_open_files(kFilesOfAHost * (request.job.nodes.size() + 1)));
  io::raise_open_files_limit();
  LOCKSTEP_TRY_ASSIGN(const auto places, places_of(request));
  LOCKSTEP_TRY_ASSIGN(io::OwnStream out,
                      io::OwnStream::open(STDOUT_FILENO, io::OwnStream::Way::write));
  LOCKSTEP_TRY_ASSIGN(io::OwnStream err,
                      io::OwnStream::open(STDERR_FILENO, io::OwnStream::Way::write));
  JobOutcome outcome;
  {
    JobFollow follow(request, std::move(out), std::move(err));
    LOCKSTEP_TRY_ASSIGN(outcome, follow.run(places));
  }
  if (outcome.gone) {
    outcome.nodes.resize(request.job.nodes.size());
  } else if (!outcome.left) {
    LOCKSTEP_TRY_ASSIGN(outcome.nodes, ask_status(request.job));
  }
  return outcome;
}

Result<std::vector<std::optional<job::JobRecord>>> ask_status(const KnownJob& job) {
  LOCKSTEP_TRY_ASSIGN(const auto endings, run_command({.hosts = job.nodes,
                                                       .argv = {"host-job", "status", job.id},
                                                       .own_binary = true,
                                                       .input = CommandRequest::Input::none,
                                                       .output = CommandRequest::Output::keep}));
  std::vector<std::optional<job::JobRecord>> nodes;
  for (std::size_t i = 0; i < endings.size(); ++i) {
    if (!endings[i].error.empty()) log::warning("{}", endings[i].error);
    const nlohmann::json answer = codec::parse_json(endings[i].out);
    nodes.emplace_back();
    if (!answer.is_array() || answer.size() != 1) continue;
    auto record = job::record_from_json(answer[0]);
    if (record) nodes.back() = std::move(*record);
  }
  return nodes;
}

JobEnding ending_of(const std::vector<std::optional<job::JobRecord>>& nodes) {
  JobEnding ending;
  for (const auto& node : nodes) {
    if (!node) continue;
    const job::JobState& state = node->state;
    ending.canceled = ending.canceled || state.canceled;
    ending.by_person = ending.by_person || (state.canceled && state.problem.empty());
    ending.ended_ms = std::max(ending.ended_ms, state.ended_ms);
    if (state.stage == job::Stage::lost) continue;
    // A node that still runs is the stage of the whole.
    if (ending.stage == job::Stage::lost || state.stage < ending.stage) ending.stage = state.stage;
    if (ending.code == 0) ending.code = state.code;
  }
  return ending;
}

}  // namespace lockstep::cluster
