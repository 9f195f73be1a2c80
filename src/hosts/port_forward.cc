#include "hosts/port_forward.h"

#include "io/listen.h"
#include "ssh/control_place.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace lockstep::hosts {
namespace {
constexpr int kBacklog = 128;
constexpr std::chrono::seconds kAcceptPause{1};
}  // namespace

PortForward::PortForward(io::Loop& loop, HostPlace place, std::vector<ForwardSpec> specs,
                         Events events)
    : loop_(loop),
      place_(std::move(place)),
      specs_(std::move(specs)),
      events_(std::move(events)),
      resume_(loop) {}

Result<std::unique_ptr<PortForward>> PortForward::open(io::Loop& loop, HostPlace place,
                                                       std::vector<ForwardSpec> specs,
                                                       Events events) {
  // Each connection takes a descriptor for its session with the master. The master inherits the
  // limit, and takes two.
  io::raise_open_files_limit();
  std::unique_ptr<PortForward> made(
      new PortForward(loop, std::move(place), std::move(specs), std::move(events)));
  LOCKSTEP_TRY_ASSIGN(made->control_, ssh::control_socket(made->place_.target, made->place_.pins));
  for (std::size_t i = 0; i < made->specs_.size(); ++i) {
    // Loopback only: on another address everybody on the network could reach the host through this
    // user's log-in.
    auto listener = io::open_listener("127.0.0.1", made->specs_[i].local, kBacklog);
    if (!listener && listener.error().code == Errc::already_exists)
      return fail(Errc::already_exists,
                  fmt::format("port {} of this machine is in use", made->specs_[i].local),
                  fmt::format("give another port, or let 0:{}:{} pick a free one",
                              made->specs_[i].host, made->specs_[i].port));
    if (!listener) return Failure(std::move(listener).error());
    // Port 0 was a wish for any free port. The caller prints the port that the kernel picked.
    made->specs_[i].local = listener->port;
    auto watch = std::make_unique<io::Watch>(loop, listener->fd.get());
    watch->start(io::kReadable, [each = made.get(), i](int) { each->accept_some(i); });
    made->listening_.push_back({std::move(listener->fd), std::move(watch)});
  }
  // Log in now and not at the first connection, so that wrong hosts fail at the start.
  made->need_master();
  return made;
}

void PortForward::accept_some(std::size_t spec) {
  io::Fd socket(accept4(listening_[spec].fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) return on_unaccepted(errno);
  out_of_files_ = false;
  Connection connection{.spec = spec, .socket = std::move(socket)};
  // A log-in is under way. Keep the connection open meanwhile: the client sees a slow answer and no
  // refusal.
  if (master_) {
    waiting_.push_back(std::move(connection));
    return;
  }
  connections_.push_back(std::move(connection));
  connect(std::prev(connections_.end()));
}

// The client may have hung up before accept4(). Without free descriptors the client waits in the
// backlog, and the listener stays readable: watching it further would spin.
void PortForward::on_unaccepted(int error) {
  if (error == EAGAIN || error == EINTR || error == ECONNABORTED) return;
  for (const Listening& each : listening_)
    each.watch->want(0);
  resume_.start(kAcceptPause, [this] {
    for (const Listening& each : listening_)
      each.watch->want(io::kReadable);
  });
  if (std::exchange(out_of_files_, true)) return;
  Error why = fail_sys("accept a connection", error).value();
  why.hint = "new connections wait until older connections end; ulimit -n sets the limit";
  events_.trouble(why);
}

void PortForward::connect(Place place) {
  const ForwardSpec& spec = specs_[place->spec];
  auto session =
      ssh::MuxSession::forward(loop_, control_, spec.host, spec.port, place->socket.get(),
                               {[place] {
                                  place->opened = true;
                                  place->socket.reset();  // the master has its own copy
                                },
                                [this, place](std::optional<int>) { on_gone(place); },
                                // Only this connection failed. The other connections of the master
                                // go on.
                                [this, place](const Error&) {
                                  tell_refusal(place->spec);
                                  drop(place);
                                }});
  if (session) {
    place->session = std::move(*session);
    return;
  }
  on_gone(place);
}

// Called when a connection has ended or no master could make the connection. A master ends ten
// minutes after its last use, or with its TCP connection. A connection that never opened gets a
// second try through a new master.
void PortForward::on_gone(Place place) {
  if (place->opened || place->again) {
    if (!place->opened)
      events_.trouble(fail(Errc::unavailable, place_.name + ": the connection was lost").value());
    return drop(place);
  }
  place->again = true;
  waiting_.push_back({.spec = place->spec, .socket = std::move(place->socket), .again = true});
  drop(place);
  need_master();
}

// Reports the reason of a refusal. The ssh master does not pass on the reason of sshd: no listener
// on the port, or forwarding forbidden. Only a trial from the host itself can tell the two apart.
void PortForward::tell_refusal(std::size_t spec) {
  // Report refusals that come together once: a browser opens several connections at a time.
  if (dial_) return;
  constexpr std::uint32_t kDialChannel = 1;
  const std::string port = fmt::format("{}:{}", specs_[spec].host, specs_[spec].port);
  const auto tell = [this](Failure why) {
    // On the next turn, because this may be a callback of dial_ or its channel.
    loop_.post(calls_([this] { dial_.reset(); }));
    events_.trouble(std::move(why).value().within(place_.name));
  };
  const auto on_end = [tell, port](const link::ChannelEnd& end) {
    // The host reaches the port, so only the rules of sshd can have refused.
    if (end.succeeded())
      return tell(fail(Errc::denied,
                       fmt::format("the host's sshd refuses to forward connections to {}", port),
                       "check AllowTcpForwarding and PermitOpen in the host's sshd_config"));
    using Kind = link::ChannelEnd::Kind;
    if (end.kind == Kind::lost || end.kind == Kind::refused)
      return tell(fail(Errc::unavailable, end.why));
    tell(fail(Errc::not_found, fmt::format("nothing listens at {} there", port)));
  };
  dial_ = std::make_unique<HostLink>(
      loop_, HostLink::Settings{.place = place_},
      HostLink::Events{[this](const link::Frame& frame) { dialing_->take(frame); },
                       [this](std::string why) { dialing_->lose(std::move(why)); }});
  dialing_ = std::make_unique<link::Channel>(
      kDialChannel, [this](const link::Frame& frame) { dial_->send(frame); },
      link::Channel::Events{.ended = on_end});
  dialing_->start(
      {.argv = {"host-dial", specs_[spec].host, std::to_string(specs_[spec].port)}, .own = true});
}

// Erases the connection on the next turn, because this may be a callback of its session.
void PortForward::drop(Place place) {
  place->socket.reset();
  loop_.post(calls_([this, place] { connections_.erase(place); }));
}

void PortForward::need_master() {
  if (master_) return;
  ssh::MasterSettings settings;
  settings.socket = control_;
  settings.pins = place_.pins;
  // Only the first log-in may ask for a passphrase. Later log-ins begin with a connection to the
  // port, at a moment that the user did not choose.
  settings.may_ask = !reached_ && isatty(STDERR_FILENO) == 1;
  master_ =
      std::make_unique<ssh::Master>(loop_, place_.target, std::move(settings),
                                    calls_([this](const Status& there) { on_master(there); }));
}

void PortForward::on_master(const Status& there) {
  master_.reset();
  std::list<Connection> waiting = std::exchange(waiting_, {});
  // A host that was never reached ends the command. A host that is lost later may come back for the
  // next connection.
  if (!there && !reached_) return events_.failed(there.error());
  if (!there && !waiting.empty()) events_.trouble(Error(there.error()).within(place_.name));
  // Destroying `waiting` closes the sockets of these connections.
  if (!there) return;
  if (!std::exchange(reached_, true)) events_.ready();
  while (!waiting.empty()) {
    connections_.splice(connections_.end(), waiting, waiting.begin());
    connect(std::prev(connections_.end()));
  }
}

}  // namespace lockstep::hosts
