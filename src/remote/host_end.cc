#include "remote/host_end.h"

#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/log.h"
#include "host/identity.h"
#include "proc/process_tree.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace lockstep::remote {
namespace {
// The grace of commands after their client is gone.
constexpr std::chrono::seconds kGrace{5};
constexpr std::chrono::seconds kKillLimit{5};
// More commands at once than any of our clients starts.
constexpr std::size_t kMostCommands = 256;
}  // namespace

HostEnd::HostEnd(io::Loop& loop, io::Fd in, io::Fd out, proc::Containment containment,
                 std::optional<io::Duration> silence)
    : loop_(loop),
      containment_(std::move(containment)),
      link_(loop, std::move(in), std::move(out), link::FrameReader::Wants::frames,
            {[this](link::Frame frame) { on_frame(std::move(frame)); },
             [this](const Error& error) {
               // An orderly end is not worth a line.
               if (error.code != Errc::canceled) log::error("link: {}", error.message);
               stop();
             }}),
      grace_(loop),
      silence_(silence),
      silent_(loop) {
  await_frame();
}

void HostEnd::await_frame() {
  if (!silence_) return;
  silent_.start(*silence_, [this] {
    log::error("link: no word from the client");
    stop();
  });
}

void HostEnd::begin() {
  link_.greet();
  link_.send(link::Hello{
      .software = LOCKSTEP_VERSION, .host = host::hostname(), .home = env_text("HOME")});
}

void HostEnd::stop() {
  if (stage_ >= Stage::stopping) return;
  stage_ = Stage::stopping;
  if (!any_running()) return finish();
  for (const auto& [channel, command] : commands_) {
    command->signal(SIGCONT);  // a stopped process cannot handle SIGTERM
    command->signal(SIGTERM);
  }
  // Commands get time to save their work. After the grace the sweep kills what is left.
  grace_.start(kGrace, [this] { finish(); });
}

void HostEnd::finish() {
  stage_ = Stage::over;
  silent_.cancel();
  containment_.sweep(kKillLimit);
  loop_.stop();
}

void HostEnd::on_frame(link::Frame frame) {
  await_frame();
  if (stage_ == Stage::greeting && !std::holds_alternative<link::Hello>(frame)) {
    log::error("link: the client sent '{}' before 'hello'", link::frame_name(frame));
    return stop();
  }
  // Frames may still arrive while commands are ending.
  if (stage_ > Stage::serving) return;
  std::visit([this](const auto& content) { on(content); }, frame);
}

void HostEnd::on(const link::Hello& hello) {
  if (hello.version == link::kVersion) {
    stage_ = Stage::serving;
    return;
  }
  log::error("link: the client speaks version {} of the link protocol, this host's binary {}",
             hello.version, link::kVersion);
  stop();
}

void HostEnd::on(const link::Start& start) {
  const std::uint32_t channel = start.channel;
  // A client that reuses a running channel is broken.
  if (commands_.contains(channel) || commands_.size() >= kMostCommands)
    return link_.send(link::Refused{channel, kExitCannotRun, "no channel for it"});
  auto command = Command::start(
      loop_, start, containment_,
      {[this](const link::Frame& frame) { link_.send(frame); }, [this] { on_process_ended(); },
       // Post: Command::finish_if_over() still runs during this call.
       [this, channel] { loop_.post([this, channel] { on_over(channel); }); }});
  if (!command)
    return link_.send(link::Refused{channel, command.error().code, command.error().why});
  link_.send(link::Started{channel, (*command)->pid()});
  commands_[channel] = std::move(*command);
}

Command* HostEnd::find(std::uint32_t channel) const {
  const auto at = commands_.find(channel);
  return at == commands_.end() ? nullptr : at->second.get();
}

void HostEnd::on(const link::Data& data) {
  if (Command* command = find(data.channel)) command->input(data.bytes);
}

void HostEnd::on(const link::Eof& eof) {
  if (Command* command = find(eof.channel)) command->end_of_input();
}

void HostEnd::on(const link::Credit& credit) {
  if (Command* command = find(credit.channel)) command->grant(credit.stream, credit.bytes);
}

void HostEnd::on(const link::Signal& signal) {
  if (const Command* command = find(signal.channel)) command->signal(signal.number);
}

void HostEnd::on(const link::Ping& ping) {
  link_.send(link::Pong{ping.number});
}

// Ignores frames of hosts.
template <class Other>
void HostEnd::on(const Other& /*frame*/) {}

bool HostEnd::any_running() const {
  return std::any_of(commands_.begin(), commands_.end(),
                     [](const auto& entry) { return entry.second->is_running(); });
}

// Kills leftover processes of the last command: the outputs would stay open and delay Exit for
// ever.
void HostEnd::on_process_ended() {
  // The sweep kills every process in the containment, so wait until no command runs.
  if (any_running()) return;
  if (stage_ == Stage::stopping) return finish();
  containment_.sweep(kKillLimit);
}

void HostEnd::on_over(std::uint32_t channel) {
  commands_.erase(channel);
}

Result<int> serve_link(proc::Rung rung, std::optional<io::Duration> silence) {
  // Blocked until SignalWatch::open(), so that no signal is lost.
  proc::block(proc::handled_signals());
  LOCKSTEP_TRY_ASSIGN(proc::Containment containment, proc::Containment::set_up(rung));
  io::Loop loop;
  const proc::Guardian* guardian = containment.guardian();
  // Stop if the guardian dies: after a SIGKILL of this process only the guardian cleans up.
  // Duplicate the guardian's descriptor, because the containment moves into HostEnd.
  const io::Fd pidfd(guardian == nullptr ? -1 : dup(guardian->pidfd.get()));
  HostEnd host(loop, io::Fd(STDIN_FILENO), io::Fd(STDOUT_FILENO), std::move(containment), silence);
  // SIGCHLD and SIGWINCH come in normal service: neither ends the link.
  LOCKSTEP_TRY_ASSIGN(const auto signals, proc::SignalWatch::open(loop, [&host](int number) {
                        if (number != SIGCHLD && number != SIGWINCH) host.stop();
                      }));
  std::optional<io::Watch> guardian_watch;
  if (pidfd) guardian_watch.emplace(loop, pidfd.get());
  if (guardian_watch) guardian_watch->start(io::kReadable, [&](int) { host.stop(); });
  host.begin();
  loop.run();
  return 0;
}

}  // namespace lockstep::remote
