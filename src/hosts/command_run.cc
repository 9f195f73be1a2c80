#include "hosts/command_run.h"

#include "base/callback_scope.h"
#include "hosts/host_output.h"
#include "hosts/wait_notice.h"
#include "io/open_files.h"
#include "io/own_stream.h"
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
constexpr int kNotReached = 255;  // as ssh has it
constexpr std::size_t kFilesOfAHost = 12;
// What does not end by SIGTERM in this time is killed by its host, as this process has left.
constexpr std::chrono::seconds kPatience{10};

class CommandRun {
 public:
  CommandRun(io::Loop& loop, const CommandRequest& request, io::OwnStream out, io::OwnStream err,
             std::optional<io::OwnStream> answer)
      : request_(request),
        loop_(loop),
        endings_(request.hosts.size()),
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
    std::unique_ptr<HostLink> connection;
    std::string prefix;
    std::unique_ptr<link::Source> input;  // of stdin
    std::unique_ptr<link::Feed> feed;     // of what was given, or is made
    bool fed = false;                     // what was given is under way
    bool asked = false;
    bool over = false;
    io::TimePoint heard;  // the last frame came
    bool pinged = false;  // and no frame has come since
    bool quiet = true;    // no output came and no input was taken since the last notice
  };

  void on_signal(int number);
  void start(std::size_t index);
  void on_frame(std::size_t index, const link::Frame& frame);
  void on_data(std::size_t index, const link::Data& data);
  bool has_input() const;
  bool is_kept(Stream stream) const;
  void when_all_is_printed(std::function<void()> fn);
  void end(std::size_t index, int code, std::string error);
  void end_others();
  void end_silent();
  void keep(std::size_t index, const link::Data& data);
  void open_input(std::size_t index);
  link::Source::Events input_events(std::size_t index);
  std::optional<std::string> next_input(std::size_t index);
  void on_asked(std::size_t index);
  void call_meanwhile();
  bool asks_lockstep() const;
  WaitNotice::Waiting waiting();

  const CommandRequest& request_;
  io::Loop& loop_;
  std::vector<HostEnding> endings_;
  std::vector<Host> hosts_;
  HostOutput out_;
  HostOutput err_;
  std::optional<HostOutput> answer_;  // Answer::pass
  std::optional<io::OwnStream> in_;
  std::unique_ptr<proc::SignalWatch> signals_;
  bool called_meanwhile_ = false;
  int stops_ = 0;
  WaitNotice notice_;
  io::Timer limit_;
  io::Timer patience_;  // with hosts that end for another one's failure
  bool failed_ = false;
  CallbackScope calls_;  // the loop may live longer
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
  return endings_;
}

// Signals go to the commands, which decide. Where nothing runs yet, or it is asked for the third
// time, this process leaves; the hosts then end what they run.
void CommandRun::on_signal(int number) {
  if (number == SIGCHLD || number == SIGWINCH) return;
  const bool asks_to_end =
      number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
  const bool all_run = std::all_of(hosts_.begin(), hosts_.end(), [](const Host& host) {
    return host.over || host.connection->ready();
  });
  stops_ += asks_to_end ? 1 : 0;
  if (asks_to_end && (!all_run || stops_ > 2)) {
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      if (!hosts_[i].over) {
        endings_[i].code = 128 + number;
        endings_[i].error = proc::signal_name(number);
      }
    return loop_.stop();
  }
  for (Host& host : hosts_)
    if (!host.over) host.connection->send(link::Signal{kChannel, number});
}

void CommandRun::start(std::size_t index) {
  const HostPlace& place = request_.hosts[index];
  Host& host = hosts_[index];
  host.heard = io::Clock::now();
  const bool alone = hosts_.size() == 1;
  const auto labels = request_.labels;
  if (labels == CommandRequest::Labels::several ? !alone : labels == CommandRequest::Labels::always)
    host.prefix = place.name + ": ";
  host.connection = std::make_unique<HostLink>(
      loop_, HostLink::Settings{.place = place, .may_ask = alone && isatty(STDERR_FILENO) == 1},
      HostLink::Events{[this, index](const link::Frame& frame) { on_frame(index, frame); },
                       [this, index](std::string why) { end(index, kNotReached, std::move(why)); },
                       [this, index] { on_asked(index); }});
  host.connection->send(link::Start{.channel = kChannel,
                                    .argv = request_.argv,
                                    .env = request_.env,
                                    .folder = request_.folder,
                                    .input = has_input(),
                                    .own = request_.own_binary,
                                    .result = request_.answer != CommandRequest::Answer::none});
}

void CommandRun::on_asked(std::size_t index) {
  hosts_[index].asked = true;
  if (std::all_of(hosts_.begin(), hosts_.end(),
                  [](const Host& host) { return host.asked || host.over; }))
    call_meanwhile();
}

void CommandRun::call_meanwhile() {
  if (!request_.meanwhile || std::exchange(called_meanwhile_, true)) return;
  request_.meanwhile();
}

void CommandRun::on_frame(std::size_t index, const link::Frame& frame) {
  hosts_[index].heard = io::Clock::now();
  hosts_[index].pinged = false;
  hosts_[index].quiet = hosts_[index].quiet && (std::holds_alternative<link::Pong>(frame) ||
                                                std::holds_alternative<link::Started>(frame));
  const std::string& name = request_.hosts[index].name;
  if (const auto* data = std::get_if<link::Data>(&frame)) return on_data(index, *data);
  if (std::holds_alternative<link::Started>(frame) && has_input()) return open_input(index);
  if (const auto* credit = std::get_if<link::Credit>(&frame)) {
    if (credit->stream != Stream::in) return;
    if (hosts_[index].input) hosts_[index].input->grant(credit->bytes);
    if (hosts_[index].feed) hosts_[index].feed->grant(credit->bytes);
    return;
  }
  if (const auto* refused = std::get_if<link::Refused>(&frame))
    return end(index, refused->code, name + ": " + refused->why);
  if (const auto* exit = std::get_if<link::Exit>(&frame)) {
    endings_[index].signal = exit->signal;
    return end(index, exit->signal != 0 ? 128 + exit->signal : exit->code, {});
  }
}

bool CommandRun::is_kept(Stream stream) const {
  if (stream == Stream::result) return request_.answer == CommandRequest::Answer::keep;
  if (request_.output == CommandRequest::Output::keep) return true;
  return request_.output == CommandRequest::Output::keep_out && stream == Stream::out;
}

void CommandRun::on_data(std::size_t index, const link::Data& data) {
  if (data.stream == Stream::err && request_.on_errors) {
    request_.on_errors(index, data.bytes);
    return hosts_[index].connection->send(
        link::Credit{kChannel, data.stream, static_cast<std::uint32_t>(data.bytes.size())});
  }
  if (is_kept(data.stream)) return keep(index, data);
  if (data.stream == Stream::result && !answer_) return;  // nobody asked for it
  HostOutput& output = data.stream == Stream::result ? *answer_
                       : data.stream == Stream::out  ? out_
                                                     : err_;
  HostLink* connection = hosts_[index].connection.get();
  output.put(hosts_[index].prefix, data.bytes,
             [this, index, connection, stream = data.stream](std::size_t bytes) {
               if (hosts_[index].over || bytes == 0) return;
               connection->send(link::Credit{kChannel, stream, static_cast<std::uint32_t>(bytes)});
             });
}

void CommandRun::keep(std::size_t index, const link::Data& data) {
  HostEnding& ending = endings_[index];
  if (ending.out.size() + ending.err.size() + ending.answer.size() + data.bytes.size() > kMostKept)
    return end(index, kNotReached,
               fmt::format("{} says more than {} MB", request_.hosts[index].name, kMostKept >> 20));
  std::string& kept = data.stream == Stream::result ? ending.answer
                      : data.stream == Stream::out  ? ending.out
                                                    : ending.err;
  kept += data.bytes;
  hosts_[index].connection->send(
      link::Credit{kChannel, data.stream, static_cast<std::uint32_t>(data.bytes.size())});
}

bool CommandRun::has_input() const {
  switch (request_.input) {
    case CommandRequest::Input::none:
      return false;
    case CommandRequest::Input::ours:
      return hosts_.size() == 1;
    case CommandRequest::Input::given:
    case CommandRequest::Input::made:
      return true;
  }
  return false;
}

void CommandRun::open_input(std::size_t index) {
  Host& host = hosts_[index];
  if (request_.input != CommandRequest::Input::ours) {
    host.feed = std::make_unique<link::Feed>(
        loop_, [this, index] { return next_input(index); }, input_events(index));
    return;
  }
  auto in = io::OwnStream::open(STDIN_FILENO, io::OwnStream::Way::read);
  if (!in) return host.connection->send(link::Eof{kChannel, Stream::in});
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
  return {[this, index](std::string bytes) {
            hosts_[index].connection->send(link::Data{kChannel, Stream::in, std::move(bytes)});
          },
          [this, index] {
            hosts_[index].connection->send(link::Eof{kChannel, Stream::in});
          }};
}

void CommandRun::end(std::size_t index, int code, std::string error) {
  Host& host = hosts_[index];
  if (host.over) return;
  host.over = true;
  host.input.reset();
  host.feed.reset();
  out_.end(host.prefix);
  err_.end(host.prefix);
  endings_[index].code = code;
  endings_[index].error = std::move(error);
  // Not inside a callback of the connection itself.
  loop_.post(calls_([&host] { host.connection.reset(); }));
  if (code != 0 && request_.fail_fast && !std::exchange(failed_, true)) end_others();
  if (!std::all_of(hosts_.begin(), hosts_.end(), [](const Host& each) { return each.over; }))
    return;
  notice_.cancel();
  limit_.cancel();
  patience_.cancel();
  when_all_is_printed([this] { loop_.stop(); });
}

// One has failed; a command that has not begun yet never does.
void CommandRun::end_others() {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].over) continue;
    endings_[i].stopped = true;
    if (hosts_[i].connection && hosts_[i].connection->ready())
      hosts_[i].connection->send(link::Signal{kChannel, SIGTERM});
    else
      end(i, kNotReached, {});
  }
  patience_.start(kPatience, [this] { loop_.stop(); });
}

void CommandRun::end_silent() {
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (!hosts_[i].over)
      end(i, kNotReached,
          fmt::format("{}: no answer within {} s", request_.hosts[i].name,
                      request_.limit->count()));
}

void CommandRun::when_all_is_printed(std::function<void()> fn) {
  out_.when_idle([this, fn = std::move(fn)] {
    err_.when_idle([this, fn] { answer_ ? answer_->when_idle(fn) : fn(); });
  });
}

// True for a question to the host's lockstep whose answer is collected, not printed. The user sees
// no output while the host works on the answer.
bool CommandRun::asks_lockstep() const {
  return request_.own_binary && request_.argv.front().starts_with("host-") &&
         request_.output != CommandRequest::Output::print && !request_.on_errors;
}

// A user's command may print nothing for hours, but the host must answer pings.
WaitNotice::Waiting CommandRun::waiting() {
  WaitNotice::Waiting away;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    Host& host = hosts_[i];
    if (host.over) continue;
    const std::string& name = request_.hosts[i].name;
    if (!host.connection->ready()) {
      away.emplace_back(name, std::string(host.connection->doing()) + kCtrlCEnds);
      continue;
    }
    const auto silent = std::chrono::round<std::chrono::seconds>(io::Clock::now() - host.heard);
    if (host.pinged)
      away.emplace_back(name, fmt::format("it has not answered for {} s; a third Ctrl-C ends this "
                                          "command",
                                          silent.count()));
    else if (host.quiet && asks_lockstep())
      away.emplace_back(name, std::string("its answer") + kCtrlCEnds);
    if (!host.pinged) host.connection->send(link::Ping{});
    host.pinged = host.quiet = true;
  }
  return away;
}

}  // namespace

int code_of(const std::vector<HostEnding>& endings) {
  for (const HostEnding& ending : endings)
    if (ending.code != 0) return ending.code;
  return 0;
}

Result<std::vector<HostEnding>> run_command(const CommandRequest& request) {
  io::Loop loop;
  return run_command(loop, request);
}

Result<std::vector<HostEnding>> run_command(io::Loop& loop, const CommandRequest& request) {
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

}  // namespace lockstep::hosts
