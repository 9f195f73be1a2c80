// The asynchronous client's way to a connection: look the name up, try each address, greet, check
// the echo; pause and begin again until the time allowed is over.
#include "io/connect.h"
#include "io/listen.h"
#include "io/tcp_probe.h"
#include "store/async_client.h"
#include "store/stranger.h"

#include <fmt/core.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::store {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kFirstPause(20);
constexpr milliseconds kLongestPause(1000);
// A connection attempt or greeting nobody answers; the text must come within ten seconds.
constexpr milliseconds kPatience(8000);
// One that has taken longer is worth a word.
constexpr milliseconds kBriefLookup(1000);
constexpr milliseconds kBriefAttempt(2000);

// A host that vanished without a word is noticed, also while it owes us the answer to a wait.
void prepare(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  io::probe_server(fd);
}

}  // namespace

AsyncClient::AsyncClient(io::Loop& loop, Options options)
    : loop_(loop), options_(std::move(options)), connect_timer_(loop), deadline_timer_(loop) {}

AsyncClient::~AsyncClient() = default;

std::string AsyncClient::place() const {
  const bool bracketed = options_.host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(bracketed ? "[{}]:{}" : "{}:{}"), options_.host, options_.port);
}

std::string AsyncClient::local_address() const {
  io::Address own;
  own.size = sizeof own.storage;
  if (!fd_ || getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&own.storage), &own.size) != 0)
    return {};
  return io::address_text(own);
}

std::string AsyncClient::local_place() const {
  return fd_ ? io::local_name(fd_.get()) : std::string();
}

std::string AsyncClient::unanswered_text() const {
  return stage_ == Stage::greeting
             ? "connected, but no answer to the greeting: is it a TCPStore?"
             : io::unanswered_text(addresses_[next_address_ - 1], options_.port);
}

std::string AsyncClient::attempt_text() const {
  const bool long_ago = io::Clock::now() - attempt_since_ >= kBriefAttempt;
  if (long_ago && stage_ == Stage::resolving)
    return "the look-up of '" + options_.host + "' does not end";
  if (long_ago && (stage_ == Stage::connecting || stage_ == Stage::greeting))
    return unanswered_text();
  return attempt_error_ ? attempt_error_->message : "no answer yet";
}

void AsyncClient::connect(Done<void> done) {
  LOCKSTEP_CHECK(stage_ == Stage::idle);
  connect_done_ = std::move(done);
  connect_since_ = io::Clock::now();
  connect_until_ = connect_since_ + options_.connect_timeout;
  pause_ = kFirstPause;
  stage_ = Stage::pausing;
  connect_timer_.start({}, [this] { attempt(); });
}

void AsyncClient::attempt() {
  next_address_ = 0;
  const auto known = io::resolve_numeric(options_.host, options_.port);
  if (known) {
    addresses_ = known->addresses;
    return try_address();
  }
  stage_ = Stage::resolving;
  addresses_.clear();
  attempt_since_ = io::Clock::now();
  connect_timer_.start(connect_until_ - attempt_since_, [this] {
    // What was met before says more than a look-up that had no time.
    if (attempt_error_ && io::Clock::now() - attempt_since_ < kBriefLookup)
      return next_address(*attempt_error_);
    next_address({Errc::timeout, "the look-up of '" + options_.host + "' does not end", {}, 0});
  });
  lookup_ = std::make_unique<io::Lookup>(loop_, options_.host, options_.port,
                                         [this](Result<io::Resolved> found) {
                                           if (!found)
                                             return next_address(std::move(found).error());
                                           addresses_ = std::move(found->addresses);
                                           try_address();
                                         });
}

void AsyncClient::try_address() {
  if (next_address_ >= addresses_.size()) {
    const auto left = std::chrono::floor<milliseconds>(connect_until_ - io::Clock::now());
    // The last attempt gets a moment, too: else "no answer" would be said of a port that refuses.
    if (left <= kFirstPause) return give_up(*attempt_error_);
    stage_ = Stage::pausing;
    connect_timer_.start(std::min(pause_, left - kFirstPause), [this] { attempt(); });
    pause_ = std::min(pause_ * 3 / 2, kLongestPause);
    return;
  }
  const io::Address& to = addresses_[next_address_++];
  const std::string what = fmt::format("connect to the store at {}", place());
  fd_ = io::Fd(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_) return next_address(fail_sys(what, errno).value());
  prepare(fd_.get());
  if (::connect(fd_.get(), to.get(), to.size) != 0 && errno != EINPROGRESS)
    return next_address(fail_sys(what, errno).value());
  stage_ = Stage::connecting;
  attempt_since_ = io::Clock::now();
  watch_ = std::make_unique<io::Watch>(loop_, fd_.get());
  watch_->start(io::kWritable, [this](int events) { on_event(events); });
  const auto left = std::chrono::ceil<milliseconds>(connect_until_ - io::Clock::now());
  connect_timer_.start(std::clamp(left, milliseconds(0), kPatience), [this, what] {
    Error error = fail_sys(what, ETIMEDOUT).value();
    error.message += ": " + unanswered_text();
    next_address(std::move(error));
  });
}

// This address came to nothing.
void AsyncClient::next_address(Error error) {
  if (next_address_ > 0 && next_address_ <= addresses_.size()) {
    const std::string tried = io::address_text(addresses_[next_address_ - 1]);
    if (tried != options_.host) error.message += fmt::format(" (tried {})", tried);
  }
  attempt_error_ = std::move(error);
  lookup_.reset();
  watch_.reset();
  fd_.reset();
  connect_timer_.cancel();
  try_address();
}

void AsyncClient::on_connect_event(int /*events*/) {
  if (stage_ == Stage::greeting) return read_echo();
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  const std::string what = "connect to the store at " + place();
  if (error != 0) return next_address(fail_sys(what, error).value());
  const std::string hello = greeting(Dialect::d, kNonce);
  if (send(fd_.get(), hello.data(), hello.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(hello.size())) {
    return next_address(fail_sys(what, errno).value());
  }
  in_.clear();
  stage_ = Stage::greeting;
  watch_->want(io::kReadable);
}

void AsyncClient::read_echo() {
  std::array<char, kEchoBytes> bytes{};
  const ssize_t got = recv(fd_.get(), bytes.data(), kEchoBytes - in_.size(), 0);
  const std::string what = "connect to the store at " + place();
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return next_address(fail_sys(what, errno).value());
  if (got == 0) {
    Error error = fail_sys(what, ECONNRESET).value();
    error.message =
        what +
        ": it closed the connection during the greeting (a PyTorch before 2.5 hosts it, or "
        "it is another program)";
    return next_address(std::move(error));
  }
  in_.append(bytes.data(), static_cast<std::size_t>(got));
  if (in_.size() < kEchoBytes) return;
  if (load_u32(in_.data()) != kNonce) return give_up(no_store(place(), in_));
  became_ready();
}

void AsyncClient::became_ready() {
  in_.clear();
  stage_ = Stage::ready;
  lookup_.reset();
  attempt_error_.reset();
  connect_timer_.cancel();
  want();
  if (const auto done = std::exchange(connect_done_, nullptr)) done({});
}

void AsyncClient::give_up(Error error) {
  const std::chrono::duration<double> took = io::Clock::now() - connect_since_;
  error.message += fmt::format(", gave up after {:.1f} s", took.count());
  watch_.reset();
  fd_.reset();
  connect_timer_.cancel();
  stage_ = Stage::down;
  down_error_ = error;
  const auto here = calls_.witness();
  if (const auto done = std::exchange(connect_done_, nullptr)) done(tl::make_unexpected(error));
  if (!here.gone()) fail_all(error);
}

}  // namespace lockstep::store
