// The socket of the blocking test client: connects with retries, sends and receives with deadlines.
#include "base/backoff.h"
#include "io/system_names.h"
#include "store/blocking_client_testing.h"
#include "store/stranger.h"

#include <fmt/core.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>

namespace lockstep::store {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Returns 0 when ready, else an errno (ETIMEDOUT at the deadline).
int wait_ready(int fd, short events, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return 0;
    if (ready == 0) return ETIMEDOUT;
    if (errno != EINTR) return errno;
  }
}

int connect_to(const io::Address& at, Clock::time_point deadline, io::Fd& fd) {
  fd = io::Fd(socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd.get(), at.get(), at.size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (const int error = wait_ready(fd.get(), POLLOUT, deadline); error != 0) return error;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

Client::TimePoint Client::deadline(std::optional<Ms> timeout) const {
  return Clock::now() + timeout.value_or(options_.timeout);
}

std::string Client::place() const {
  return fmt::format("{}:{}", options_.host, options_.port);
}

Result<Client> Client::connect(Options options) {
  const auto start = Clock::now();
  Client client(std::move(options));
  const auto until = client.deadline();
  Backoff pauses({.first = milliseconds(20), .longest = milliseconds(1000), .percent = 150});
  while (true) {
    Status done = client.connect_once(until);
    if (done) done = client.handshake(until);
    if (done) return client;
    Error error = std::move(done).error();
    const milliseconds pause = pauses.next();
    if (error.code == Errc::corrupt || Clock::now() + pause >= until) {
      error.message += fmt::format(", gave up after {:.1f} s",
                                   std::chrono::duration<double>(Clock::now() - start).count());
      return tl::make_unexpected(std::move(error));
    }
    std::this_thread::sleep_for(pause);
  }
}

Status Client::connect_once(TimePoint until) {
  const std::string what = "connect to the store at " + place();
  const auto found = io::look_up(options_.host, options_.port, io::Names::any);
  if (!found) return tl::make_unexpected(Error(found.error()).within(what));
  int error = EADDRNOTAVAIL;
  in_.clear();
  taken_ = 0;
  for (const io::Address& address : found->addresses) {
    error = connect_to(address, until, fd_);
    if (error == 0) return {};
  }
  fd_.reset();
  return fail_sys(what, error);
}

// Sends the greeting. A newer server echoes the PING. Any other answer comes from another program.
Status Client::handshake(TimePoint until) {
  if (options_.dialect == Dialect::a) return {};
  LOCKSTEP_TRY(send_all(greeting(Dialect::d, kNonce), until));
  LOCKSTEP_TRY(need(kEchoBytes, until));
  taken_ = kEchoBytes;
  if (load_u32(in_.data()) == kNonce) return {};
  return broken(no_store(place(), std::string_view(in_).substr(0, kEchoBytes)));
}

Status Client::broken(Error error) {
  fd_.reset();
  return tl::make_unexpected(std::move(error));
}

Status Client::send_all(std::string_view bytes, TimePoint until) {
  if (!fd_)
    return fail(Errc::unavailable, "the connection to the store at " + place() + " is closed");
  while (!bytes.empty()) {
    const ssize_t put = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
      continue;
    }
    int error = errno;
    if (error == EAGAIN) error = wait_ready(fd_.get(), POLLOUT, until);
    if (error == 0 || error == EINTR) continue;
    return broken(fail_sys("send to the store at " + place(), error).value());
  }
  return {};
}

// Receives until `bytes` unparsed bytes are buffered. A timeout keeps the connection and the bytes
// received so far.
Status Client::need(std::size_t bytes, TimePoint until) {
  if (!fd_)
    return fail(Errc::unavailable, "the connection to the store at " + place() + " is closed");
  if (taken_ > 0 && in_.size() - taken_ < bytes) in_.erase(0, std::exchange(taken_, 0));
  char chunk[65536];
  while (in_.size() - taken_ < bytes) {
    const ssize_t got = recv(fd_.get(), chunk, sizeof chunk, 0);
    if (got > 0) {
      in_.append(chunk, static_cast<std::size_t>(got));
      continue;
    }
    if (got == 0) {
      return broken(
          {Errc::unavailable, "the store at " + place() + " closed the connection", {}, 0});
    }
    int error = errno;
    if (error == EAGAIN) error = wait_ready(fd_.get(), POLLIN, until);
    if (error == 0 || error == EINTR) continue;
    const std::string what = "receive from the store at " + place();
    if (error == ETIMEDOUT) return fail(Errc::timeout, what + ": timed out");
    return broken(fail_sys(what, error).value());
  }
  return {};
}

Result<std::uint8_t> Client::take_u8(TimePoint until) {
  LOCKSTEP_TRY(need(1, until));
  return static_cast<std::uint8_t>(in_[taken_++]);
}

Result<std::uint64_t> Client::take_u64(TimePoint until) {
  LOCKSTEP_TRY(need(8, until));
  const std::uint64_t number = load_u64(in_.data() + taken_);
  taken_ += 8;
  return number;
}

Result<std::string> Client::take_string(TimePoint until) {
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t size, take_u64(until));
  const Limits limits;
  if (size > limits.max_message_bytes) {
    return tl::make_unexpected(
        broken({Errc::corrupt,
                fmt::format("the store at {} announces {} bytes", place(), size),
                {},
                0})
            .error());
  }
  LOCKSTEP_TRY(need(static_cast<std::size_t>(size), until));
  std::string text = in_.substr(taken_, static_cast<std::size_t>(size));
  taken_ += static_cast<std::size_t>(size);
  return text;
}

}  // namespace lockstep::store
