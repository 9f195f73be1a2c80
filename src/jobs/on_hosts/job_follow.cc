#include "jobs/on_hosts/job_follow.h"

#include "base/log.h"
#include "hosts/host_link.h"
#include "io/open_files.h"
#include "io/own_stream.h"
#include "jobs/on_hosts/follow_core.h"
#include "jobs/on_hosts/follow_output.h"
#include "link/channel.h"
#include "proc/signal_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::jobs::on_hosts {
namespace {

using link::Stream;

constexpr std::uint32_t kFollow = 1;  // channel numbers of a link
constexpr std::uint32_t kRecord = 2;  // asks for the job's record; later channels cancel
constexpr std::size_t kMostRecord = 1UL << 20;
constexpr std::size_t kFilesOfAHost = 12;

FollowCore::Now now() {
  timespec boot{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  return {io::Clock::now(),
          std::chrono::seconds(boot.tv_sec) + std::chrono::duration_cast<std::chrono::milliseconds>(
                                                  std::chrono::nanoseconds(boot.tv_nsec))};
}

// Carries out FollowCore's decisions: owns a link to each host, the output, the signals and one
// timer.
class Driver {
 public:
  Driver(const FollowRequest& request, hosts::OpenLink open_link, io::OwnStream out,
         io::OwnStream err);
  // from: where each host's output begins.
  Result<Followed> run(const std::vector<OutputPlaces>& from);

 private:
  struct Host {
    std::unique_ptr<hosts::Link> link;
    std::vector<std::shared_ptr<link::Channel>> channels;  // of this link
    OutputPlaces come;                                     // bytes of both outputs received so far
    std::string record;                                    // the answer to `ask`, so far
    bool over = false;                                     // no more output comes from this host
  };

  FollowCore::Settings settings();
  void carry_out(const FollowActions& actions);
  void carry_out(const FollowAction& action);
  void open(std::size_t node);
  void follow(std::size_t node);
  void ask(std::size_t node);
  void cancel(std::size_t node, int count);
  void start(std::size_t node, std::shared_ptr<link::Channel> channel,
             std::vector<std::string> argv);
  link::Channel::Send to_link(std::size_t node);
  void refused(std::size_t node, const link::ChannelEnd& end);
  void watch_reader();
  void on_frame(std::size_t node, const link::Frame& frame);
  void on_output(std::size_t node, Stream stream, std::string_view bytes);
  void ask_gone();

  const FollowRequest& request_;
  hosts::OpenLink open_link_;
  io::Loop loop_;
  std::vector<Host> hosts_;
  FollowCore core_;
  io::Fd reader_;  // stdout once more, if it is a pipe: a loop watches each descriptor only once
  std::unique_ptr<io::Watch> reader_watch_;
  FollowOutput output_;
  std::unique_ptr<proc::SignalWatch> signals_;
  io::Timer timer_;
  std::optional<ClientVote> vote_;
  std::jthread asking_;  // must end before the loop does
};

Driver::Driver(const FollowRequest& request, hosts::OpenLink open_link, io::OwnStream out,
               io::OwnStream err)
    : request_(request),
      open_link_(std::move(open_link)),
      hosts_(request.job.nodes.size()),
      core_(settings(), now()),
      reader_(io::is_pipe_or_socket(out.fd()) ? fcntl(out.fd(), F_DUPFD_CLOEXEC, 3) : -1),
      output_(loop_, request, std::move(out), std::move(err)),
      timer_(loop_) {}

FollowCore::Settings Driver::settings() {
  return {.job = request_.job.id,
          .hosts = jobs::node_names(request_.job),
          .to_end = request_.options.to_end,
          .on_stop = request_.options.on_stop,
          .may_be_gone = request_.options.gone != nullptr,
          .doing = [this](std::size_t node) { return hosts_[node].link->doing(); }};
}

Result<Followed> Driver::run(const std::vector<OutputPlaces>& from) {
  LOCKSTEP_TRY_ASSIGN(signals_, proc::SignalWatch::open(loop_, [this](int number) {
                        carry_out(core_.on_signal(number, now()));
                      }));
  watch_reader();
  if (request_.vote) vote_.emplace(loop_, *request_.vote, request_.job.nodes, open_link_);
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    hosts_[i].come = from[i];
  carry_out(core_.start(now()));
  loop_.run();
  return core_.outcome();
}

// A job may print nothing for hours. `lockstep logs -f JOB | head` must not wait for the next line
// to see that its reader is gone.
void Driver::watch_reader() {
  const FollowOptions& options = request_.options;
  if (!reader_ || !options.print || options.on_stop != FollowOptions::OnStop::leave) return;
  reader_watch_ = std::make_unique<io::Watch>(loop_, reader_.get());
  reader_watch_->start(io::kReadable, [this](int ready) {
    reader_watch_->stop();
    if ((ready & io::kHangup) != 0) carry_out(core_.on_signal(SIGPIPE, now()));
  });
}

// Every event ends here: carry out the core's decisions, then set the timer for the next one.
void Driver::carry_out(const FollowActions& actions) {
  for (const FollowAction& action : actions)
    carry_out(action);
  const io::TimePoint next = core_.next_tick();
  // Nothing is due any more: only the output is awaited.
  if (next == io::TimePoint::max()) return timer_.cancel();
  timer_.start(std::max(next - io::Clock::now(), io::Duration::zero()),
               [this] { carry_out(core_.tick(now())); });
}

void Driver::carry_out(const FollowAction& action) {
  switch (action.kind) {
    case FollowAction::Kind::open:
      return open(action.node);
    case FollowAction::Kind::ask:
      return ask(action.node);
    case FollowAction::Kind::cancel:
      return cancel(action.node, action.count);
    case FollowAction::Kind::end_node:
      hosts_[action.node].over = true;
      return output_.end(action.node);
    case FollowAction::Kind::ask_gone:
      return ask_gone();
    case FollowAction::Kind::say:
      return log::warning("{}", action.text);
    case FollowAction::Kind::finish:
      return output_.finish([this] { loop_.stop(); });
  }
}

void Driver::open(std::size_t node) {
  Host& host = hosts_[node];
  host.channels.clear();
  if (vote_) vote_->lose(node);
  host.link.reset();  // first: both links may use the connection's one log-in
  host.link = open_link_(
      loop_, hosts::Link::Settings{.place = request_.job.nodes[node]},
      hosts::Link::Events{
          [this, node](const link::Frame& frame) { on_frame(node, frame); },
          [this, node](const std::string& why) { carry_out(core_.on_failed(node, why, now())); }});
  follow(node);
}

void Driver::follow(std::size_t node) {
  const Host& host = hosts_[node];
  start(node,
        std::make_shared<link::Channel>(
            kFollow, to_link(node),
            link::Channel::Events{
                .started =
                    [this, node] {
                      if (vote_) vote_->reach(node);
                      carry_out(core_.on_started(node, now()));
                    },
                .output = [this, node](Stream stream,
                                       std::string_view bytes) { on_output(node, stream, bytes); },
                .ended =
                    [this, node](const link::ChannelEnd& end) {
                      using End = link::ChannelEnd::Kind;
                      if (end.kind == End::refused) return refused(node, end);
                      const bool exited = end.kind == End::exited;
                      carry_out(core_.on_follower_end(node, exited ? end.code : 0,
                                                      exited ? 0 : end.code, now()));
                    }},
            // The host sends more only once its bytes are printed.
            link::Channel::Credits::when_consumed),
        {"host-job", request_.options.to_end ? "follow" : "print", request_.job.id,
         std::to_string(host.come.out), std::to_string(host.come.err)});
}

void Driver::ask(std::size_t node) {
  // Forget an answer cut off by a broken link.
  hosts_[node].record.clear();
  start(node,
        std::make_shared<link::Channel>(
            kRecord, to_link(node),
            link::Channel::Events{
                .output =
                    [this, node](Stream stream, std::string_view bytes) {
                      std::string& record = hosts_[node].record;
                      // Bound the answer: a faulty host may send any amount.
                      if (stream == Stream::out && record.size() + bytes.size() <= kMostRecord)
                        record += bytes;
                    },
                .ended =
                    [this, node](const link::ChannelEnd& end) {
                      if (end.kind == link::ChannelEnd::Kind::refused) return refused(node, end);
                      carry_out(core_.on_record(node, hosts_[node].record, now()));
                    }}),
        {"host-job", "status", request_.job.id});
}

void Driver::cancel(std::size_t node, int count) {
  start(node,
        std::make_shared<link::Channel>(
            // A channel for each count: the first request may still be open when the second signal
            // comes.
            kRecord + static_cast<std::uint32_t>(count), to_link(node),
            link::Channel::Events{.ended =
                                      [this, node](const link::ChannelEnd& end) {
                                        if (end.kind == link::ChannelEnd::Kind::refused)
                                          refused(node, end);
                                      }}),
        {"host-job", "cancel", request_.job.id});
}

link::Channel::Send Driver::to_link(std::size_t node) {
  return [this, node](const link::Frame& frame) { hosts_[node].link->send(frame); };
}

void Driver::start(std::size_t node, std::shared_ptr<link::Channel> channel,
                   std::vector<std::string> argv) {
  channel->start({.argv = std::move(argv), .own = true});
  hosts_[node].channels.push_back(std::move(channel));
}

void Driver::refused(std::size_t node, const link::ChannelEnd& end) {
  carry_out(core_.on_failed(node, request_.job.nodes[node].name + ": " + end.why, now()));
}

void Driver::on_frame(std::size_t node, const link::Frame& frame) {
  // Frames of an ended follower may still arrive. Their output was printed or given up.
  if (hosts_[node].over) return;
  // A copy: an event may add a channel.
  const auto channels = hosts_[node].channels;
  for (const auto& channel : channels)
    if (channel->take(frame)) return;
}

void Driver::on_output(std::size_t node, Stream stream, std::string_view bytes) {
  Host& host = hosts_[node];
  // Count at arrival: after a broken link the next follower starts here, so no line comes twice.
  (stream == Stream::out ? host.come.out : host.come.err) +=
      static_cast<std::int64_t>(bytes.size());
  // By the time the bytes are printed the host may have a new link with a new window: do not credit
  // the new link.
  const auto printed = [follower = std::weak_ptr(host.channels.front()),
                        stream](std::size_t count) {
    if (const auto channel = follower.lock()) channel->consumed(stream, count);
  };
  output_.put(node, stream, bytes, printed);
  carry_out(core_.on_output(node, now()));
}

// The question goes to providers over the network, so it must not hold up the output.
void Driver::ask_gone() {
  asking_ = std::jthread([this] {
    const bool gone = request_.options.gone();
    // The loop's thread joins: only there may FollowCore be touched.
    loop_.post([this, gone] {
      asking_.join();
      carry_out(core_.on_gone(gone, now()));
    });
  });
}

}  // namespace

Result<Followed> follow_job(const FollowRequest& request, const hosts::OpenLink& open_link,
                            const hosts::RunCommand& run) {
  // Refuse early: a link without descriptors would fail in the midst of the output.
  LOCKSTEP_TRY(io::check_open_files(kFilesOfAHost * (request.job.nodes.size() + 1)));
  io::raise_open_files_limit();
  LOCKSTEP_TRY_ASSIGN(const auto places, first_places(request, run));
  LOCKSTEP_TRY_ASSIGN(io::OwnStream out,
                      io::OwnStream::open(STDOUT_FILENO, io::OwnStream::Way::write));
  LOCKSTEP_TRY_ASSIGN(io::OwnStream err,
                      io::OwnStream::open(STDERR_FILENO, io::OwnStream::Way::write));
  return Driver(request, open_link, std::move(out), std::move(err)).run(places);
}

}  // namespace lockstep::jobs::on_hosts
