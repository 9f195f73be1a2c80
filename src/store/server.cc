// Moves bytes between sockets and engine: one read and one send per wake-up. The replies of the
// connection being served are collected in a string that all connections share.
#include "store/server.h"

#include "base/log.h"
#include "io/listen.h"
#include "io/tcp_probe.h"
#include "store/init_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace lockstep::store {
namespace {
// A bound on accepts per turn, so that a burst of clients does not delay the connected ones.
constexpr int kAcceptsPerWakeup = 256;
// Free the shared string's memory beyond this size.
constexpr std::size_t kKeepScratchBytes = 1U << 20;
// An idle connection may keep this much memory for its next replies.
constexpr std::size_t kKeepIdleBytes = 64;
// At the end of a job, a guest without a sign of life for five seconds is given up.
constexpr io::ProbePlan kFarewell{std::chrono::seconds(1), std::chrono::seconds(1), 5};
}  // namespace

struct Server::Connection : Session {
  Connection(io::Loop& loop, io::Fd socket, const Limits& limits)
      : fd(std::move(socket)),
        peer(io::peer_name(fd.get())),
        watch(loop, fd.get()),
        reader(limits) {}

  io::Fd fd;
  std::string peer;  // "HOST:PORT"; stored now, since a broken connection no longer knows its peer
  io::Watch watch;   // declared after fd: destroyed first
  RequestReader reader;
  // Bytes that were read but not served yet, because the turn was over or too many replies are
  // unsent.
  std::string backlog;
  std::size_t sent = 0;   // bytes at the front of out that are already sent
  std::size_t index = 0;  // position in connections_
  TimePoint connected = {};
  TimePoint heard_at = {};  // of the last bytes from the peer
  bool heard = false;       // the peer has sent something
  bool ended = false;       // the peer will send no more: close after everything is served and sent
  int interest = 0;

  std::size_t unsent() const { return out.size() - sent; }
};

Result<std::unique_ptr<Server>> Server::listen(io::Loop& loop, Options options) {
  LOCKSTEP_TRY_ASSIGN(io::Listener listener,
                      io::open_listener(options.host, options.port, options.backlog));
  std::unique_ptr<Server> server(new Server(loop, std::move(options)));
  server->port_ = listener.port;
  server->listener_ = std::move(listener.fd);
  // See refuse_one().
  server->spare_ = io::Fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  server->accept_watch_ = std::make_unique<io::Watch>(loop, server->listener_.get());
  server->accept_watch_->start(io::kReadable,
                               [self = server.get()](int) { self->on_acceptable(); });
  return server;
}

Server::Server(io::Loop& loop, Options options)
    : loop_(loop),
      options_(std::move(options)),
      engine_(options_.limits),
      buffer_size_(std::max<std::size_t>(options_.read_buffer_bytes, 1)),
      departure_(loop),
      vigil_(loop) {}

Server::~Server() {
  while (!connections_.empty())
    close(*connections_.back());
}

Stats Server::stats() const {
  Stats stats = counts_;
  stats.connections = connections_.size();
  stats.requests_total =
      std::accumulate(stats.requests.begin(), stats.requests.end(), std::uint64_t{0});
  stats.keys = engine_.num_keys();
  stats.key_space_bytes = engine_.bytes();
  stats.parked = engine_.parked();
  return stats;
}

void Server::set(std::string_view key, std::string_view value) {
  engine_.set(key, value);
  flush();
}

void Server::flush() {
  flush_touched();
}

// --- accepting ---

void Server::on_acceptable() {
  for (int i = 0; i < kAcceptsPerWakeup; ++i) {
    io::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      admit(std::move(fd));
    } else if (errno == EMFILE || errno == ENFILE) {
      // Without free descriptors accept() fails even if no client waits. Ask poll() first.
      pollfd waiting{listener_.get(), POLLIN, 0};
      if (poll(&waiting, 1, 0) != 1) return;
      if (close_oldest_silent()) continue;
      refuse_one();
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

// A client sends its greeting as soon as it is connected. A silent connection therefore makes room
// for others.
bool Server::close_oldest_silent() {
  Connection* oldest = nullptr;
  for (const auto& connection : connections_)
    if (!connection->heard && (oldest == nullptr || connection->number < oldest->number))
      oldest = connection.get();
  if (oldest != nullptr) close(*oldest);
  return oldest != nullptr;
}

// Out of descriptors. If left alone, the level-triggered listener would spin and the peer would
// hang. Release the spare descriptor for a moment to accept the peer and close it.
void Server::refuse_one() {
  // Log once per shortage: refusals may come by the thousand.
  if (!std::exchange(refusal_logged_, true)) {
    log::warning("store on port {}: out of file descriptors at {} connections, refusing more",
                 port_, connections_.size());
  }
  spare_.reset();
  { const io::Fd refused(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  spare_ = io::Fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ++counts_.refused;
}

void Server::admit(io::Fd fd) {
  // Replies are small, and the peer waits for each: Nagle's algorithm must not hold them back.
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  auto owned = std::make_unique<Connection>(loop_, std::move(fd), options_.limits);
  Connection& connection = *owned;
  connection.index = connections_.size();
  connections_.push_back(std::move(owned));
  // Positions in connections_ change when others close, so the order of arrival needs a number.
  connection.number = ++counts_.connections_total;
  connection.connected = connection.heard_at = loop_.turn_began();
  connection.interest = io::kReadable;
  connection.watch.start(io::kReadable,
                         [this, at = &connection](int events) { on_event(*at, events); });
}

// --- serving ---

void Server::on_event(Connection& connection, int events) {
  const bool reading = (connection.interest & io::kReadable) != 0;
  // An error stops the watch. settle() starts the watch again while bytes may be left to read: the
  // error is reported once more behind them.
  const bool broken = (events & io::kHangup) != 0;
  if (broken && !reading && connection.backlog.empty()) return close(connection);
  if (broken) connection.watch.want(connection.interest = 0);
  if (reading && (events & io::kReadable) != 0) {
    on_readable(connection, broken);
  } else if ((events & io::kWritable) != 0) {
    if (!send_out(connection) || !resume(connection)) return flush_touched();
    settle(connection);
  }
  flush_touched();
}

void Server::on_readable(Connection& connection, bool broken) {
  if (!buffer_) buffer_.reset(new char[buffer_size_]);
  const ssize_t got = recv(connection.fd.get(), buffer_.get(), buffer_size_, 0);
  if (got < 0) {
    if (broken || (errno != EAGAIN && errno != EINTR)) close(connection);
    return;
  }
  if (got == 0) connection.ended = true;
  connection.heard = true;
  // The loop knows the time already: a system call for each read would cost more than the witness
  // is worth.
  connection.heard_at = loop_.turn_began();
  counts_.bytes_in += static_cast<std::uint64_t>(got);
  serve(connection, {buffer_.get(), static_cast<std::size_t>(got)});
}

void Server::serve(Connection& connection, std::string_view bytes) {
  // Lend the shared string, which already has room, so that idle connections own no memory.
  const bool lent = connection.out.empty();
  if (lent) connection.out.swap(scratch_);
  feed(connection, bytes);
  if (!bytes.empty()) connection.backlog.assign(bytes);
  if (!send_out(connection)) return;
  // Take the string back only if everything was sent. Otherwise the connection keeps it, and the
  // next one gets a new string.
  if (lent && connection.out.empty()) connection.out.swap(scratch_);
  settle(connection);
}

// Serves requests from the front of `bytes` until one of three runs out: bytes, the turn's effort,
// room for replies.
void Server::feed(Connection& connection, std::string_view& bytes) {
  Request request;
  engine_.tell_time(loop_.turn_began());
  const std::uint64_t enough = engine_.effort() + options_.max_effort_per_turn;
  while (connection.unsent() <= options_.max_unsent_bytes && engine_.effort() < enough) {
    const auto step = connection.reader.next(bytes, request);
    if (step == RequestReader::Step::more) return;
    Status status;
    if (step == RequestReader::Step::error) {
      status = fail(Errc::corrupt, connection.reader.error());
    } else {
      ++counts_.requests[static_cast<std::size_t>(request.op)];
      connection.dialect = connection.reader.dialect();
      status = engine_.handle(connection, request);
    }
    if (!status) {
      // After a protocol error the rest of the stream cannot be understood.
      bytes = {};
      connection.verdict = std::move(status).error().message;
      return;
    }
  }
}

// Sends what the kernel takes now. Returns false if the connection is gone.
bool Server::send_out(Connection& connection) {
  while (connection.unsent() > 0) {
    const ssize_t put = send(connection.fd.get(), connection.out.data() + connection.sent,
                             connection.unsent(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return true;
    if (put < 0) {
      close(connection);
      return false;
    }
    counts_.bytes_out += static_cast<std::uint64_t>(put);
    connection.sent += static_cast<std::size_t>(put);
    if (connection.unsent() == 0) break;
    // Move the rest to the front only when half is sent, so that the cost stays linear.
    if (connection.sent > connection.out.size() / 2) {
      connection.out.erase(0, std::exchange(connection.sent, 0));
    }
    return true;  // the socket is full
  }
  connection.sent = 0;
  if (connection.out.capacity() > kKeepScratchBytes) {
    connection.out = {};
  } else {
    connection.out.clear();
  }
  return true;
}

// Serves more of the backlog. Returns false if the connection is gone.
bool Server::resume(Connection& connection) {
  if (connection.backlog.empty() || !connection.verdict.empty()) return true;
  const std::string held = std::exchange(connection.backlog, {});
  std::string_view bytes = held;
  feed(connection, bytes);
  connection.backlog.assign(bytes);
  return send_out(connection);
}

// Call after sending. Closes a finished connection, else waits for the right events. Requests left
// in the backlog wait for writability, which comes at once if nothing is unsent.
void Server::settle(Connection& connection) {
  if (connection.out.empty() && connection.out.capacity() > kKeepIdleBytes) connection.out = {};
  if (!connection.verdict.empty() && (connection.unsent() == 0 || connection.unread))
    return close_for_error(connection);
  if (connection.ended && connection.backlog.empty() && connection.unsent() == 0)
    return close(connection);
  const bool reads = !connection.ended && connection.verdict.empty() &&
                     connection.backlog.empty() && connection.unsent() <= options_.max_unsent_bytes;
  const bool writes =
      connection.unsent() > 0 || (!connection.backlog.empty() && connection.verdict.empty());
  const int interest = (reads ? io::kReadable : 0) | (writes ? io::kWritable : 0);
  if (interest == connection.interest) return;
  connection.interest = interest;
  connection.watch.want(interest);
}

// Sends the output that other connections' requests caused: answers to ended waits, and notices.
void Server::flush_touched() {
  while (Session* session = engine_.next_touched()) {
    auto& connection = static_cast<Connection&>(*session);
    if (send_out(connection)) settle(connection);
  }
}

void Server::close_for_error(Connection& connection) {
  ++counts_.closed_for_error;
  counts_.last_error = connection.peer + ": " + connection.verdict;
  log::info("store on port {}: closed {}", port_, counts_.last_error);
  close(connection);
}

void Server::purge() {
  while (!connections_.empty())
    close(*connections_.back());
  // Clients may be connected in the kernel's queue without having been accepted.
  while (io::Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC))) {
  }
  engine_.purge();
  left_.clear();  // of the attempt before
}

void Server::close(Connection& connection) {
  engine_.drop(connection);
  remember(connection);
  if (on_departure_) departed_.push_back(std::move(connection.peer));
  const std::size_t index = connection.index;
  // Swap with the last element: the order of connections_ does not matter.
  std::swap(connections_[index], connections_.back());
  connections_[index]->index = index;
  connections_.pop_back();
  if (refusal_logged_ && connections_.empty()) refusal_logged_ = false;
  // Report in a later turn: close() is called in the middle of other work.
  if (on_departure_ && !departure_.active()) departure_.start({}, [this] { on_departure_(); });
}

// Keeps what a witness tells of a client after its end: without it, a rank that has left would look
// like a rank that has never connected.
void Server::remember(const Connection& connection) {
  if (connection.pid == 0) return;
  if (left_.size() == kMostDeparted) left_.pop_front();
  left_.push_back({connection.number,
                   connection.pid,
                   connection.peer,
                   connection.connected,
                   loop_.turn_began(),
                   {}});
}

Witness Server::witness(const WitnessLimits& limits) const {
  Witness witness;
  witness.taken = loop_.turn_began();
  std::size_t waits = limits.waits;
  for (const auto& connection : connections_) {
    if (witness.sessions.size() == limits.sessions) {
      witness.all_sessions = false;
      break;
    }
    auto parked = engine_.waits_of(*connection, waits, limits.keys_per_wait);
    waits -= parked.size();
    if (parked.size() < connection->parked()) witness.all_sessions = false;
    witness.sessions.push_back({connection->number, connection->pid, connection->peer,
                                connection->connected, connection->heard_at, std::move(parked)});
  }
  std::sort(witness.sessions.begin(), witness.sessions.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  witness.departed.assign(left_.begin(), left_.end());
  const InterestingKeys interesting(witness.sessions);
  witness.keys = engine_.keys_for([&](std::string_view key) { return interesting.has(key); },
                                  limits, witness.all_keys);
  return witness;
}

void Server::on_departure(std::function<void()> fn) {
  on_departure_ = std::move(fn);
  departed_.clear();
  // A departure not reported yet has no receiver any more.
  if (!on_departure_) departure_.cancel();
}

void Server::await_departures() {
  if (vigil_.active()) return;
  // Keepalive finds hosts that vanished without a packet. At the end of a job the server would
  // otherwise wait for them for hours.
  for (const auto& connection : connections_)
    io::probe_peer(connection->fd.get(), kFarewell);
  drop_the_vanished();
}

// Iterate backwards, because close() puts the last connection in the closed one's place.
void Server::drop_the_vanished() {
  for (std::size_t i = connections_.size(); i-- > 0;)
    if (io::ignores_data(connections_[i]->fd.get(), kFarewell.every * kFarewell.most))
      close(*connections_[i]);
  vigil_.start(kFarewell.every, [this] { drop_the_vanished(); });
}

}  // namespace lockstep::store
