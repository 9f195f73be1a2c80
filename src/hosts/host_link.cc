#include "hosts/host_link.h"

#include "base/environment.h"
#include "base/last_line.h"
#include "base/text.h"
#include "io/fd.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace lockstep::hosts {

Error with_guess(Error error, const HostPlace& place) {
  // A name that does not resolve may be a misspelled cluster. A refused log-in proves that the host
  // exists.
  if (error.code == Errc::not_found && error.hint.empty() && !place.like.empty())
    error.hint = "did you mean the cluster " + place.like + "?";
  return error;
}

HostLink::HostLink(io::Loop& loop, const Settings& settings, Events events)
    : loop_(loop), name_(settings.place.name), events_(std::move(events)), turn_(loop) {
  if (settings.place.here || settings.command) {
    const Status opened =
        settings.command ? open_command(*settings.command) : open_here(settings.commands);
    // The caller has no complete object yet, so report the failure on the next turn of the loop.
    if (!opened) fail_soon(opened.error().message);
    return;
  }
  connection_ = std::make_unique<ssh::Connection>(
      loop_,
      ssh::ConnectionSettings{.target = settings.place.target,
                              .name = name_,
                              .pins = settings.place.pins,
                              .may_ask = settings.may_ask,
                              .commands = settings.commands},
      ssh::Connection::Events{[this] {
                                if (events_.asked) events_.asked();
                              },
                              [](const link::Hello&) {},
                              [this](link::Frame frame) { events_.frame(std::move(frame)); },
                              [this, place = settings.place](const Error& failure) {
                                const Error error = with_guess(failure, place);
                                std::string text = error.message;
                                if (!error.hint.empty()) text += "; " + error.hint;
                                events_.failed(std::move(text));
                              }});
}

// A command ends when its stdin ends. Before the greeting, srun may still wait for the step and not
// read its stdin.
HostLink::~HostLink() {
  if (errors_ && child_ && !link_->greeted()) child_->signal_group(SIGTERM);
}

// Starts `lockstep link` of this binary at the other end of two pipes. Commands on this machine
// thus get the same signals and cleanup as on a host.
Status HostLink::open_here(ssh::Commands commands) {
  proc::SpawnSpec spec;
  LOCKSTEP_TRY_ASSIGN(spec.executable, proc::own_executable());
  spec.argv = {"lockstep", "link"};
  // The other end exits when its input ends, after stopping the commands. SIGKILL would leave the
  // commands behind.
  spec.die_with_parent = false;
  if (commands == ssh::Commands::may_outlive_us) spec.argv.emplace_back("--may-outlive");
  for (char** entry = environ; *entry != nullptr; ++entry)
    spec.env.emplace_back(*entry);
  return start(std::move(spec));
}

// Keeps the stderr of the command: its last line says why the link ended.
Status HostLink::open_command(const LinkCommand& command) {
  proc::SpawnSpec spec;
  LOCKSTEP_TRY_ASSIGN(spec.executable, proc::find_executable(command.argv.at(0), env_text("PATH")));
  spec.argv = command.argv;
  spec.env = command.env;
  LOCKSTEP_TRY_ASSIGN(io::Pipe errors, io::make_pipe());
  spec.stderr_fd = errors.write.get();
  spec.die_with_parent = command.dies_with_us;
  LOCKSTEP_TRY(start(std::move(spec)));
  errors_ = std::move(errors.read);
  errors_watch_ = std::make_unique<io::Watch>(loop_, errors_.get());
  errors_watch_->start(io::kReadable, [this](int) { hear(); });
  return {};
}

void HostLink::hear() {
  constexpr std::size_t kMostHeard = 4096;
  constexpr int kMostReads = 8;  // a turn of the loop: the other end may never stop
  std::array<char, kMostHeard> bytes;
  ssize_t got = -1;
  for (int i = 0; i < kMostReads; ++i) {
    got = read(errors_.get(), bytes.data(), bytes.size());
    if (got <= 0) break;
    heard_.append(bytes.data(), static_cast<std::size_t>(got));
    if (heard_.size() > kMostHeard) heard_.erase(0, heard_.size() - kMostHeard);
  }
  // A closed descriptor stays readable for ever, so the watch would spin.
  if (got == 0) errors_watch_->stop();
}

void HostLink::on_end(const Error& error) {
  if (errors_) hear();
  const std::string said = printable(last_line(heard_));
  events_.failed(name_ + ": " + (said.empty() ? error.message : said));
}

Status HostLink::start(proc::SpawnSpec spec) {
  LOCKSTEP_TRY_ASSIGN(io::Pipe to, io::make_pipe());
  LOCKSTEP_TRY_ASSIGN(io::Pipe from, io::make_pipe());
  spec.stdin_fd = to.read.get();
  spec.stdout_fd = from.write.get();
  LOCKSTEP_TRY_ASSIGN(child_, proc::spawn(spec));
  link_ = std::make_unique<link::Endpoint>(
      loop_, std::move(from.read), std::move(to.write), link::FrameReader::Wants::greeting,
      link::Endpoint::Events{[this](link::Frame frame) { events_.frame(std::move(frame)); },
                             [this](const Error& error) { on_end(error); }});
  link_->send(link::Hello{.software = LOCKSTEP_VERSION});
  // No log-in happens here, so the wait begins at once.
  if (events_.asked) turn_.start({}, [this] { events_.asked(); });
  return {};
}

void HostLink::fail_soon(std::string why) {
  turn_.start({}, [this, why = name_ + ": " + std::move(why)] { events_.failed(why); });
}

void HostLink::send(const link::Frame& frame) {
  if (connection_) return connection_->send(frame);
  if (link_) link_->send(frame);
}

bool HostLink::ready() const {
  return connection_ ? connection_->stage() == ssh::Connection::Stage::ready : link_ != nullptr;
}

const char* HostLink::doing() const {
  return connection_ && connection_->stage() == ssh::Connection::Stage::pushing
             ? "the binary is being sent"
             : "logging in";
}

OpenLink host_links() {
  return [](io::Loop& loop, const Link::Settings& settings, Link::Events events) {
    return std::make_unique<HostLink>(loop, settings, std::move(events));
  };
}

}  // namespace lockstep::hosts
