// Connecting the asynchronous client: the dialer connects, then the peer must echo the greeting.
#include "io/listen.h"
#include "io/place_text.h"
#include "io/resolve.h"
#include "io/tcp_probe.h"
#include "store/async_client.h"
#include "store/stranger.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::store {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kFirstPause(20);
constexpr milliseconds kLongestPause(1000);
// Longest time for one address. A user who waits must see the reason within ten seconds.
constexpr milliseconds kPatience(8000);
// A step is mentioned in notices once it has taken this long.
constexpr milliseconds kBriefAttempt(2000);
constexpr const char* kNoEcho = "connected, but no answer to the greeting: is it a TCPStore?";

io::DialRules rules(milliseconds patience) {
  io::DialRules rules;
  rules.patience = patience;
  rules.most_for_address = kPatience;
  rules.first_pause = kFirstPause;
  rules.longest_pause = kLongestPause;
  // Give the last attempt a moment, too: otherwise a refusing port would be reported as "no
  // answer".
  rules.last_round = kFirstPause;
  return rules;
}

}  // namespace

AsyncClient::AsyncClient(io::Loop& loop, Options options)
    : loop_(loop), options_(std::move(options)), greet_timer_(loop), deadline_timer_(loop) {}

AsyncClient::~AsyncClient() = default;

std::string AsyncClient::place() const {
  return io::place_text(options_.host, options_.port);
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

std::string AsyncClient::connecting() const {
  return "connect to the store at " + place();
}

std::string AsyncClient::attempt_text() const {
  using Dialing = io::Dialer::Stage;
  if (down_error_) return down_error_->message;
  if (!dialer_) return "no answer yet";
  if (io::Clock::now() - dialer_->step_since() >= kBriefAttempt) {
    switch (dialer_->stage()) {
      case Dialing::looking_up:
        return "the look-up of '" + options_.host + "' does not end";
      case Dialing::connecting:
        return dialer_->unanswered();
      case Dialing::connected:
        return kNoEcho;
      case Dialing::pausing:
        break;
    }
  }
  return dialer_->error() ? dialer_->error()->message : "no answer yet";
}

void AsyncClient::connect(Done<void> done) {
  LOCKSTEP_CHECK(stage_ == Stage::idle);
  connect_done_ = std::move(done);
  stage_ = Stage::dialing;
  dialer_ = std::make_unique<io::Dialer>(
      loop_, io::Dialer::Target{connecting(), options_.host, options_.port},
      rules(options_.connect_timeout),
      io::Dialer::Events{.connected = [this](io::Fd fd) { greet(std::move(fd)); },
                         .round_failed = {},
                         .gave_up = [this](Error error) { give_up(std::move(error)); }});
}

void AsyncClient::greet(io::Fd fd) {
  fd_ = std::move(fd);
  // Detect a host that vanished without closing the connection, even while it owes the answer to a
  // WAIT.
  io::tune_client(fd_.get());
  stage_ = Stage::greeting;
  in_.clear();
  const std::string hello = greeting(Dialect::d, kNonce);
  // A fresh socket buffer takes these few bytes at once. A short write means that the connection is
  // broken.
  if (send(fd_.get(), hello.data(), hello.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(hello.size())) {
    return next_address(fail_sys(connecting(), errno).value());
  }
  watch_ = std::make_unique<io::Watch>(loop_, fd_.get());
  watch_->start(io::kReadable, [this](int events) { on_event(events); });
  // The greeting uses the rest of the address's time: a port that accepts and stays silent must not
  // hold up the other addresses.
  greet_timer_.start(dialer_->step_until() - io::Clock::now(), [this] {
    Error error = fail_sys(connecting(), ETIMEDOUT).value();
    error.message += std::string(": ") + kNoEcho;
    next_address(std::move(error));
  });
}

// The peer is not a TCPStore, or not yet: try the next address.
void AsyncClient::next_address(Error error) {
  greet_timer_.cancel();
  watch_.reset();
  fd_.reset();
  stage_ = Stage::dialing;
  dialer_->go_on(std::move(error));
}

void AsyncClient::read_echo() {
  std::array<char, kEchoBytes> bytes{};
  const ssize_t got = recv(fd_.get(), bytes.data(), kEchoBytes - in_.size(), 0);
  const std::string what = connecting();
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return next_address(fail_sys(what, errno).value());
  // A PyTorch before 2.5 does not know PING and closes the connection.
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
  // A wrong echo comes from another program. Retrying would not help.
  if (load_u32(in_.data()) != kNonce) return give_up(no_store(place(), in_));
  became_ready();
}

void AsyncClient::became_ready() {
  in_.clear();
  stage_ = Stage::ready;
  dialer_.reset();
  greet_timer_.cancel();
  want();
  if (const auto done = std::exchange(connect_done_, nullptr)) done({});
}

void AsyncClient::give_up(Error error) {
  const std::chrono::duration<double> took = io::Clock::now() - dialer_->since();
  error.message += fmt::format(", gave up after {:.1f} s", took.count());
  watch_.reset();
  fd_.reset();
  greet_timer_.cancel();
  dialer_.reset();
  stage_ = Stage::down;
  down_error_ = error;
  // The callback may destroy this client.
  const auto here = calls_.witness();
  if (const auto done = std::exchange(connect_done_, nullptr)) done(tl::make_unexpected(error));
  if (!here.gone()) fail_all(error);
}

}  // namespace lockstep::store
