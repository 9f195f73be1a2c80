#include "hosts/link_forward.h"

#include "base/text.h"
#include "io/listen.h"
#include "io/open_files.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace lockstep::hosts {
namespace {

constexpr int kBacklog = 128;
constexpr std::size_t kFilesOfAConnection = 2;
constexpr std::size_t kMostSaid = 300;
// The other end takes four missing pings for the end of this process (cli/link.cc).
constexpr std::chrono::seconds kPingPause{15};
constexpr int kMostUnanswered = 4;

}  // namespace

LinkForward::LinkForward(io::Loop& loop, ForwardSpec spec, std::string place, Events events)
    : loop_(loop),
      spec_(std::move(spec)),
      place_(std::move(place)),
      events_(std::move(events)),
      next_ping_(loop),
      notice_(loop, [this] {
        return WaitNotice::Waiting{{place_, std::string("its answer") + kCtrlCEnds}};
      }) {}

Result<std::unique_ptr<LinkForward>> LinkForward::open(io::Loop& loop,
                                                       const Link::Settings& settings,
                                                       ForwardSpec spec, Events events,
                                                       const OpenLink& links) {
  io::raise_open_files_limit();
  // Without free descriptors the listener would stay readable, and the loop would spin.
  LOCKSTEP_TRY(io::check_open_files(kFilesOfAConnection * (kMostConnections + 1)));
  // Loopback only: another address would let everybody on the network through.
  LOCKSTEP_TRY_ASSIGN(io::Listener listener, io::open_listener("127.0.0.1", spec.local, kBacklog));
  spec.local = listener.port;
  std::unique_ptr<LinkForward> made(
      new LinkForward(loop, std::move(spec), settings.place.name, std::move(events)));
  LinkForward* const self = made.get();
  made->listener_ = std::move(listener.fd);
  made->watch_ = std::make_unique<io::Watch>(loop, made->listener_.get());
  made->link_ = links(loop, settings,
                      {[self](const link::Frame& frame) { self->on_frame(frame); },
                       [self](std::string why) { self->fail_all(std::move(why)); }});
  made->ping();
  made->notice_.start();
  return made;
}

// The first pong shows that the other end serves. Until then clients wait in the backlog.
void LinkForward::on_frame(const link::Frame& frame) {
  if (std::holds_alternative<link::Pong>(frame)) {
    unanswered_ = 0;
    if (std::exchange(ready_, true)) return;
    notice_.cancel();
    watch_->start(io::kReadable, [this](int) { accept_one(); });
    return events_.ready();
  }
  for (auto& [number, connection] : connections_)
    // An event of the channel may change connections_.
    if (connection.channel->take(frame)) return;
}

// An answer may take long before the link is ready: the way may wait for a free place there.
void LinkForward::ping() {
  if (ready_ && unanswered_ == kMostUnanswered)
    return fail_all(fmt::format("{}: no answer for {} s", place_,
                                std::chrono::seconds(kPingPause * kMostUnanswered).count()));
  if (ready_ || unanswered_ == 0) {
    ++unanswered_;
    link_->send(link::Ping{});
  }
  next_ping_.start(kPingPause, [this] { ping(); });
}

void LinkForward::fail_all(std::string why) {
  if (std::exchange(over_, true)) return;
  next_ping_.cancel();
  notice_.cancel();
  watch_->stop();
  events_.failed(fail(Errc::unavailable, std::move(why)).value());
}

void LinkForward::accept_one() {
  io::Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  // The client may have hung up.
  if (!socket) return;
  io::Fd writes(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  if (!writes) return;
  const std::uint32_t number = ++last_;
  connections_.emplace(number, Connection{.reads = std::move(socket), .writes = std::move(writes)});
  begin(number);
  if (connections_.size() == kMostConnections) watch_->want(0);
}

void LinkForward::begin(std::uint32_t number) {
  Connection& connection = connections_.at(number);
  connection.channel = std::make_unique<link::Channel>(
      number, [this](const link::Frame& frame) { link_->send(frame); },
      link::Channel::Events{
          .output = [this, number](link::Stream stream,
                                   std::string_view bytes) { on_output(number, stream, bytes); },
          .input_read = [&connection](std::size_t bytes) { connection.source->grant(bytes); },
          .ended = [this, number](const link::ChannelEnd& end) { on_ended(number, end); }},
      link::Channel::Credits::when_consumed);
  connection.sink = std::make_unique<link::Sink>(
      loop_, connection.writes.get(), true,
      link::Sink::Events{[&connection](std::size_t bytes) {
                           connection.channel->consumed(link::Stream::out, bytes);
                         },
                         [this, number] { drop(number); }});
  connection.channel->start({.argv = {"host-dial", spec_.host, std::to_string(spec_.port), "carry"},
                             .folder = "/",  // the home may be missing there
                             .input = true,
                             .own = true});
  connection.source = std::make_unique<link::Source>(
      loop_, connection.reads.get(), true,
      link::Source::Events{
          [&connection](std::string bytes) { connection.channel->write(std::move(bytes)); },
          [&connection] { connection.channel->end_input(); }});
}

void LinkForward::on_output(std::uint32_t number, link::Stream stream, std::string_view bytes) {
  Connection& connection = connections_.at(number);
  if (stream != link::Stream::out) {
    connection.said += bytes.substr(0, kMostSaid - std::min(kMostSaid, connection.said.size()));
    return connection.channel->consumed(stream, bytes.size());
  }
  connection.sink->put(bytes);
  // The client has hung up, and the server there may have nothing to say for long.
  if (connection.sink->broken()) connection.channel->signal(SIGTERM);
}

void LinkForward::on_ended(std::uint32_t number, const link::ChannelEnd& end) {
  Connection& connection = connections_.at(number);
  connection.source.reset();
  using Kind = link::ChannelEnd::Kind;
  if (end.kind == Kind::exited && end.code != 0) {
    const std::string said = printable(strip(connection.said));
    events_.trouble(fail(Errc::not_found,
                         said.empty()
                             ? fmt::format("nothing listens at {}:{} there", spec_.host, spec_.port)
                             : said)
                        .value()
                        .within(place_));
  } else if (end.kind == Kind::refused) {
    events_.trouble(fail(Errc::unavailable, printable(end.why)).value().within(place_));
  }
  connection.sink->finish();  // closes the connection behind the last byte
}

// Erases the connection on the next turn, because this is a callback of its sink.
void LinkForward::drop(std::uint32_t number) {
  loop_.post(calls_([this, number] {
    connections_.erase(number);
    if (connections_.size() == kMostConnections - 1) watch_->want(io::kReadable);
  }));
}

}  // namespace lockstep::hosts
