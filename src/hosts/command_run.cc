#include "hosts/command_run.h"

#include "base/callback_scope.h"
#include "base/exit_codes.h"
#include "hosts/command_course.h"
#include "hosts/host_output.h"
#include "hosts/wait_notice.h"
#include "io/open_files.h"
#include "io/own_stream.h"
#include "link/channel.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace lockstep::hosts {
namespace {

using link::Stream;

constexpr std::uint32_t kChannel = 1;
// The code of ssh for a connection that failed.
// An upper bound: the session's socket and pipes, and during a log-in also ssh's pipe, pidfd and
// lock.
constexpr std::size_t kFilesOfAHost = 12;
// Time for commands to exit after SIGTERM. Then this process exits, and each host kills the
// commands of the client that is gone.
constexpr std::chrono::seconds kPatience{10};

class CommandRun {
 public:
  CommandRun(io::Loop& loop, const CommandRequest& request, io::OwnStream out, io::OwnStream err,
             std::optional<io::OwnStream> answer)
      : request_(request),
        loop_(loop),
        course_(
            request, [this](std::size_t host) { return reach(host); }, io::Clock::now()),
        out_(loop_, std::move(out)),
        err_(loop_, std::move(err)),
        notice_(loop_, [this] { return waiting(); }),
        limit_(loop_),
        patience_(loop_) {
    if (answer) answer_.emplace(loop_, std::move(*answer));
  }

  Result<std::vector<HostEnding>> run();

 private:
  struct Host {
    std::unique_ptr<HostLink> connection;  // reset soon after the host is over
    std::unique_ptr<link::Channel> channel;
    std::string prefix;
    std::unique_ptr<link::Source> input;  // from stdin
    std::unique_ptr<link::Feed> feed;     // from given or made bytes
    bool fed = false;                     // the given bytes are being sent
  };

  void on_signal(int number);
  void start(std::size_t index);
  void on_frame(std::size_t index, const link::Frame& frame);
  void on_output(std::size_t index, Stream stream, std::string_view bytes);
  void on_end(std::size_t index, const link::ChannelEnd& how);
  void when_all_is_printed(std::function<void()> fn);
  CommandCourse::Reach reach(std::size_t index) const;
  void end(std::size_t index, int code, std::string error);
  void close(std::size_t index, bool end_all);
  void end_others();
  void end_silent();
  void keep(std::size_t index, Stream stream, std::string_view bytes);
  void pass_output(std::size_t index, std::string_view bytes);
  void open_input(std::size_t index);
  link::Source::Events input_events(std::size_t index);
  std::optional<std::string> next_input(std::size_t index);
  void on_asked(std::size_t index);
  void call_meanwhile();
  WaitNotice::Waiting waiting();

  const CommandRequest& request_;
  io::Loop& loop_;
  CommandCourse course_;
  std::vector<Host> hosts_;
  HostOutput out_;
  HostOutput err_;
  std::optional<HostOutput> answer_;  // for Answer::pass
  std::optional<io::OwnStream> in_;
  std::unique_ptr<proc::SignalWatch> signals_;
  bool called_meanwhile_ = false;
  WaitNotice notice_;
  io::Timer limit_;
  io::Timer patience_;   // runs while hosts stop after a failure (fail_fast)
  CallbackScope calls_;  // the loop may outlive this object
};

Result<std::vector<HostEnding>> CommandRun::run() {
  LOCKSTEP_TRY_ASSIGN(signals_,
                      proc::SignalWatch::open(loop_, [this](int number) { on_signal(number); }));
  hosts_.resize(request_.hosts.size());
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    start(i);
  notice_.start();
  if (request_.limit) limit_.start(*request_.limit, [this] { end_silent(); });
  loop_.run();
  return course_.endings();
}

CommandCourse::Reach CommandRun::reach(std::size_t index) const {
  const HostLink& link = *hosts_[index].connection;
  return {link.ready(), link.doing()};
}

void CommandRun::on_signal(int number) {
  const auto means = course_.on_signal(number);
  // Stopping the loop destroys all links. Each host notices the lost client and ends the command.
  if (means == CommandCourse::OnSignal::leave) return loop_.stop();
  if (means == CommandCourse::OnSignal::ignore) return;
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (!course_.is_over(i)) hosts_[i].channel->signal(number);
}

void CommandRun::start(std::size_t index) {
  const HostPlace& place = request_.hosts[index];
  Host& host = hosts_[index];
  host.prefix = course_.prefix(index);
  const bool alone = hosts_.size() == 1;
  host.connection = std::make_unique<HostLink>(
      // The prompts of several ssh processes would mix on the terminal. Without a terminal, no user
      // can answer.
      loop_,
      HostLink::Settings{.place = place,
                         .may_ask = alone && isatty(STDERR_FILENO) == 1,
                         .commands = request_.may_outlive ? ssh::Commands::may_outlive_us
                                                          : ssh::Commands::end_with_us},
      HostLink::Events{[this, index](const link::Frame& frame) { on_frame(index, frame); },
                       [&host](std::string why) { host.channel->lose(std::move(why)); },
                       [this, index] { on_asked(index); }});
  host.channel = std::make_unique<link::Channel>(
      kChannel,
      [&host](const link::Frame& frame) {
        // The channel lives longer than the connection, and credit for output that is printed late
        // finds no link.
        if (host.connection) host.connection->send(frame);
      },
      link::Channel::Events{
          .started =
              [this, index] {
                if (course_.has_input()) open_input(index);
              },
          .output = [this, index](Stream stream,
                                  std::string_view bytes) { on_output(index, stream, bytes); },
          .input_read =
              [&host](std::size_t bytes) {
                if (host.input) host.input->grant(bytes);
                if (host.feed) host.feed->grant(bytes);
              },
          .ended = [this, index](const link::ChannelEnd& how) { on_end(index, how); }},
      // Credit only after printing: a slow reader of this process slows the commands down, and
      // memory stays bounded.
      link::Channel::Credits::when_consumed);
  host.channel->start({.argv = request_.argv,
                       .env = request_.env,
                       .folder = request_.folder,
                       .input = course_.has_input(),
                       .own = request_.own_binary,
                       .result = request_.answer != CommandRequest::Answer::none});
}

void CommandRun::on_asked(std::size_t index) {
  if (course_.on_asked(index)) call_meanwhile();
}

void CommandRun::call_meanwhile() {
  if (!request_.meanwhile || std::exchange(called_meanwhile_, true)) return;
  request_.meanwhile();
}

void CommandRun::on_frame(std::size_t index, const link::Frame& frame) {
  course_.on_frame(index, frame, io::Clock::now());
  hosts_[index].channel->take(frame);
}

void CommandRun::on_end(std::size_t index, const link::ChannelEnd& how) {
  if (!course_.is_over(index)) close(index, course_.end(index, how));
}

void CommandRun::on_output(std::size_t index, Stream stream, std::string_view bytes) {
  Host& host = hosts_[index];
  // The function takes the bytes at once, so the host gets the credit back now.
  if (stream == Stream::err && request_.on_errors) {
    request_.on_errors(index, bytes);
    return host.channel->consumed(stream, bytes.size());
  }
  if (stream == Stream::out && request_.on_output) return pass_output(index, bytes);
  if (course_.is_kept(stream)) return keep(index, stream, bytes);
  // Unrequested bytes get no credit, so the host can send one window of them at most.
  if (stream == Stream::result && !answer_) return;
  HostOutput& output = stream == Stream::result ? *answer_ : stream == Stream::out ? out_ : err_;
  output.put(host.prefix, bytes,
             [&host, stream](std::size_t count) { host.channel->consumed(stream, count); });
}

void CommandRun::pass_output(std::size_t index, std::string_view bytes) {
  if (course_.is_over(index)) return;
  const io::TimePoint began = io::Clock::now();
  const Status taken = request_.on_output(index, bytes);
  if (!taken) return end(index, kExitNotReached, taken.error().message);
  if (request_.limit)
    limit_.start(course_.limit_after(bytes.size(), began, io::Clock::now()),
                 [this] { end_silent(); });
  hosts_[index].channel->consumed(Stream::out, bytes.size());
}

void CommandRun::keep(std::size_t index, Stream stream, std::string_view bytes) {
  if (course_.is_over(index)) return;
  if (course_.keep(index, stream, bytes))
    return hosts_[index].channel->consumed(stream, bytes.size());
  // An answer cut at the limit must not pass for a whole one, so the host fails.
  end(index, kExitNotReached,
      fmt::format("{} printed more than {} MB", request_.hosts[index].name,
                  request_.most_kept >> 20));
}

void CommandRun::open_input(std::size_t index) {
  Host& host = hosts_[index];
  if (request_.input != CommandRequest::Input::ours) {
    host.feed = std::make_unique<link::Feed>(
        loop_, [this, index] { return next_input(index); }, input_events(index));
    return;
  }
  auto in = io::OwnStream::open(STDIN_FILENO, io::OwnStream::Way::read);
  // A closed stdin counts as an empty input.
  if (!in) return host.channel->end_input();
  in_ = std::move(*in);
  host.input =
      std::make_unique<link::Source>(loop_, in_->fd(), in_->pollable(), input_events(index));
}

std::optional<std::string> CommandRun::next_input(std::size_t index) {
  if (request_.input == CommandRequest::Input::made) {
    call_meanwhile();
    return request_.make_input(index);
  }
  if (std::exchange(hosts_[index].fed, true)) return std::nullopt;
  return request_.given[request_.given.size() == 1 ? 0 : index];
}

link::Source::Events CommandRun::input_events(std::size_t index) {
  return {[this, index](std::string bytes) { hosts_[index].channel->write(std::move(bytes)); },
          [this, index] { hosts_[index].channel->end_input(); }};
}

void CommandRun::end(std::size_t index, int code, std::string error) {
  if (!course_.is_over(index)) close(index, course_.end(index, code, std::move(error)));
}

// Releases the resources of a host that is over. end_all: the failure of this host stops all other
// hosts.
void CommandRun::close(std::size_t index, bool end_all) {
  Host& host = hosts_[index];
  host.input.reset();
  host.feed.reset();
  out_.end(host.prefix);
  err_.end(host.prefix);
  // On the next turn, because this function may run inside a callback of the connection.
  loop_.post(calls_([&host] { host.connection.reset(); }));
  if (end_all) end_others();
  if (!course_.all_over()) return;
  notice_.cancel();
  limit_.cancel();
  patience_.cancel();
  // Output of fast hosts may still wait for a slow terminal or pipe.
  when_all_is_printed([this] { loop_.stop(); });
}

// A host without a ready link has no command to signal. Dropping the connection keeps the command
// from ever starting.
void CommandRun::end_others() {
  for (const std::size_t i : course_.stop_others()) {
    if (hosts_[i].connection && hosts_[i].connection->ready())
      hosts_[i].channel->signal(SIGTERM);
    else
      end(i, kExitNotReached, {});
  }
  // A command may ignore SIGTERM. Leaving makes the host kill the command.
  patience_.start(kPatience, [this] { loop_.stop(); });
}

void CommandRun::end_silent() {
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    end(i, kExitNotReached, course_.limit_error(i));
}

void CommandRun::when_all_is_printed(std::function<void()> fn) {
  // Wait for the streams in turn: each HostOutput takes a single waiting function.
  out_.when_idle([this, fn = std::move(fn)] {
    err_.when_idle([this, fn] { answer_ ? answer_->when_idle(fn) : fn(); });
  });
}

WaitNotice::Waiting CommandRun::waiting() {
  auto silence = course_.silence(io::Clock::now());
  // The pongs arrive before the next notice, which names the hosts without one.
  for (const std::size_t i : silence.pings)
    hosts_[i].connection->send(link::Ping{});
  return std::move(silence.waiting);
}

}  // namespace

Result<std::vector<HostEnding>> run_command(const CommandRequest& request) {
  io::Loop loop;
  return run_command(loop, request);
}

Result<std::vector<HostEnding>> run_command(io::Loop& loop, const CommandRequest& request) {
  // Fail before the first log-in. Running out of descriptors in the middle would fail some hosts at
  // random.
  LOCKSTEP_TRY(io::check_open_files(kFilesOfAHost * (request.hosts.size() + 1)));
  io::raise_open_files_limit();
  LOCKSTEP_TRY_ASSIGN(io::OwnStream out,
                      io::OwnStream::open(STDOUT_FILENO, io::OwnStream::Way::write));
  LOCKSTEP_TRY_ASSIGN(io::OwnStream err,
                      io::OwnStream::open(STDERR_FILENO, io::OwnStream::Way::write));
  std::optional<io::OwnStream> answer;
  if (request.answer == CommandRequest::Answer::pass) {
    LOCKSTEP_TRY_ASSIGN(io::OwnStream opened,
                        io::OwnStream::open(request.answer_fd, io::OwnStream::Way::write));
    answer.emplace(std::move(opened));
  }
  CommandRun run(loop, request, std::move(out), std::move(err), std::move(answer));
  return run.run();
}

RunCommand over_links() {
  return [](io::Loop& loop, const CommandRequest& request) { return run_command(loop, request); };
}

}  // namespace lockstep::hosts
