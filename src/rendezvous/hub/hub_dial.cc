// Attempts, the greeting, and what the other side is if it is no hub.
#include "rendezvous/hub/hub_dial.h"

#include "base/text.h"
#include "io/connect.h"
#include "store/wire.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::rendezvous::hub {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kFirstPause(20);
constexpr milliseconds kLongestPause(500);
constexpr milliseconds kConnectPatience(2500);
constexpr milliseconds kBriefLookup(1000);
constexpr milliseconds kGreetPatience(8000);
// Also for an attempt near the end of all patience, or its haste would be what is told.
constexpr milliseconds kLeastGreetPatience(1000);
constexpr milliseconds kProbePatience(2000);
// The host of a job that has just ended may still be there.
constexpr milliseconds kOtherJobPatience(5000);
constexpr const char* kNoGreeting = "connected, but no answer to the greeting";

}  // namespace

Error refusal_error(const Refusal& refusal) {
  const auto code = [&] {
    switch (refusal.why) {
      case Why::token:
        return Errc::denied;
      case Why::closed:
      case Why::leaving:
        return Errc::canceled;
      case Why::timeout:
        return Errc::timeout;
      case Why::malformed:
        return Errc::corrupt;
      default:
        return Errc::invalid_input;
    }
  };
  return {code(), refusal.text, refusal.hint, 0};
}

HubDial::HubDial(io::Loop& loop, HubDialSettings settings, Done done)
    : loop_(loop),
      settings_(std::move(settings)),
      done_(std::move(done)),
      timer_(loop),
      since_(io::Clock::now()),
      until_(since_ + settings_.patience),
      pause_(kFirstPause) {
  timer_.start({}, [this] { attempt(); });
}

std::string HubDial::what() const {
  const bool bracketed = settings_.host.find(':') != std::string::npos;
  return fmt::format(
      fmt::runtime(bracketed ? "reach the rendezvous at [{}]:{}" : "reach the rendezvous at {}:{}"),
      printable(settings_.host), settings_.port);
}

std::string HubDial::trouble() const {
  if (!last_) return doing_;
  const std::string place = what() + ": ";
  return last_->message.starts_with(place) ? last_->message.substr(place.size()) : last_->message;
}

// --- attempts ---

void HubDial::attempt() {
  next_ = 0;
  other_job_before_ = std::exchange(other_job_, false);
  if (auto known = io::resolve_numeric(settings_.host, settings_.port)) {
    addresses_ = std::move(known->addresses);
    return try_address();
  }
  addresses_.clear();
  doing_ = "its name is being looked up";
  timer_.start(until_ - io::Clock::now(), [this, since = io::Clock::now()] {
    const bool begun_just_now = io::Clock::now() - since < kBriefLookup;
    // What was met before says more.
    if (last_ && begun_just_now) return next_address(*last_);
    next_address(
        {Errc::timeout, "the look-up of '" + printable(settings_.host) + "' does not end", {}, 0});
  });
  lookup_ = std::make_unique<io::Lookup>(loop_, settings_.host, settings_.port,
                                         [this](Result<io::Resolved> found) {
                                           if (!found)
                                             return next_address(std::move(found).error());
                                           addresses_ = std::move(found->addresses);
                                           try_address();
                                         });
}

void HubDial::try_address() {
  if (next_ >= addresses_.size()) return pause();
  ++next_;
  open_socket(&HubDial::greet);
}

// Connects to the address before next_; then `connected`, or on with the next address.
void HubDial::open_socket(void (HubDial::*connected)()) {
  const io::Address& to = addresses_[next_ - 1];
  doing_ = "no answer yet from " + io::address_text(to);
  fd_ = io::Fd(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_) return next_address(fail_sys(what(), errno).value());
  if (connect(fd_.get(), to.get(), to.size) != 0 && errno != EINPROGRESS)
    return next_address(fail_sys(what(), errno).value());
  watch_ = std::make_unique<io::Watch>(loop_, fd_.get());
  watch_->start(io::kWritable, [this, connected](int) { on_writable(connected); });
  timer_.start(kConnectPatience, [this] {
    Error error = fail_sys(what(), ETIMEDOUT).value();
    error.message += ": " + io::unanswered_text(addresses_[next_ - 1], settings_.port);
    next_address(std::move(error));
  });
}

void HubDial::on_writable(void (HubDial::*connected)()) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return next_address(fail_sys(what(), error).value());
  (this->*connected)();
}

// This address came to nothing.
void HubDial::next_address(Error error) {
  if (next_ > 0 && next_ <= addresses_.size()) {
    const std::string tried = io::address_text(addresses_[next_ - 1]);
    if (tried != settings_.host) error.message += fmt::format(" (tried {})", tried);
  }
  const auto now = io::Clock::now();
  const bool refused = error.sys == ECONNREFUSED || error.sys == ECONNRESET;
  if (!refused) refused_since_.reset();
  if (refused && !refused_since_) refused_since_ = now;
  // Another address of the same name at which nobody listens says less than a hub that answers.
  if (!refused || !(other_job_ || other_job_before_)) last_ = std::move(error);
  drop();
  try_address();
}

void HubDial::drop() {
  lookup_.reset();
  stream_.reset();
  watch_.reset();
  fd_.reset();
  timer_.cancel();
}

void HubDial::pause() {
  const auto now = io::Clock::now();
  const bool nobody =
      refused_since_ && now + pause_ >= *refused_since_ + settings_.refused_patience;
  if (nobody || now + pause_ >= until_) return give_up(*last_);
  timer_.start(pause_, [this] { attempt(); });
  pause_ = std::min(pause_ * 3 / 2, kLongestPause);
  if (const auto tell = on_attempt_) tell(*last_);
}

void HubDial::give_up(Error error) {
  const std::chrono::duration<double> took = io::Clock::now() - since_;
  drop();
  if (took >= milliseconds(100))
    error.message += fmt::format(", gave up after {:.1f} s", took.count());
  if (const auto done = std::exchange(done_, nullptr)) done(tl::make_unexpected(std::move(error)));
}

// --- the greeting ---

void HubDial::greet() {
  watch_.reset();
  hub_nonce_.reset();
  doing_ = kNoGreeting;
  nonce_ = random_nonce();
  const io::Duration left = until_ - io::Clock::now();
  timer_.start(std::clamp<io::Duration>(left, kLeastGreetPatience, kGreetPatience), [this] {
    Error error = fail_sys(what(), ETIMEDOUT).value();
    error.message += fmt::format(": {}", kNoGreeting);
    next_address(std::move(error));
  });
  stream_ = std::make_unique<HubStream>(
      loop_, std::move(fd_),
      HubStream::Events{.frame = [this](Frame frame) { on_frame(std::move(frame)); },
                        .bytes = {},
                        .ended = [this](const Error& error) { on_ended(error); }});
  Hello hello;
  hello.has_token = settings_.token.has_value();
  hello.nonce = nonce_;
  hello.agent = settings_.agent;
  hello.run_id = settings_.run_id;
  hello.name = settings_.name;
  stream_->send(hello);
}

Mac HubDial::proof(Side side) const {
  return prove(*settings_.token, side, nonce_, *hub_nonce_, run_id_on_the_wire(settings_.run_id));
}

void HubDial::on_frame(Frame frame) {
  if (const auto* refusal = std::get_if<Refusal>(&frame)) return on_refusal(*refusal);
  if (const auto* challenge = std::get_if<Challenge>(&frame);
      challenge != nullptr && settings_.token && !hub_nonce_) {
    hub_nonce_ = challenge->nonce;
    return stream_->send(Proof{proof(Side::agent)});
  }
  const auto* welcome = std::get_if<Welcome>(&frame);
  if (welcome == nullptr)
    return give_up({Errc::corrupt,
                    fmt::format("{}: it answers the greeting with '{}'", what(), frame_name(frame)),
                    {},
                    0});
  const bool proven = !settings_.token || (hub_nonce_ && same_mac(welcome->mac, proof(Side::hub)));
  if (!proven)
    return give_up({Errc::denied, what() + ": the host does not know the job token",
                    "give every node the same --rdzv-token-file", 0});
  timer_.cancel();
  stream_->set_limit(FrameReader::kFromHub);
  io::Address own;
  own.size = sizeof own.storage;
  const bool known =
      getsockname(stream_->fd(), reinterpret_cast<sockaddr*>(&own.storage), &own.size) == 0;
  const auto done = std::exchange(done_, nullptr);
  if (done) done(Connected{std::move(stream_), *welcome, known ? io::address_text(own) : ""});
}

void HubDial::on_refusal(const Refusal& refusal) {
  Error error = refusal_error(refusal).within(what());
  const auto now = io::Clock::now();
  if (refusal.why != Why::run_id) return give_up(std::move(error));
  other_job_ = true;
  if (!other_job_since_) other_job_since_ = now;
  if (now - *other_job_since_ >= kOtherJobPatience) return give_up(std::move(error));
  next_address(std::move(error));
}

void HubDial::on_ended(const Error& error) {
  const std::string first = stream_->reader().stranger();
  if (error.code == Errc::corrupt) {
    std::string text = what() + ": ";
    switch (first.empty() ? Stranger::other : recognise(first)) {
      case Stranger::web:
        text += "a web server answers there";
        break;
      case Stranger::ssh:
        text += "an SSH server answers there";
        break;
      default:
        text += error.message;
    }
    return give_up({Errc::invalid_input, text, "check host and port of --rdzv-endpoint", 0});
  }
  if (!stream_->heard_anything()) {
    drop();
    return open_socket(&HubDial::probe);
  }
  Error closed = fail_sys(what(), ECONNRESET).value();
  closed.message = what() + ": " + error.message + " during the greeting";
  next_address(std::move(closed));
}

// --- closed without a word: is it a store? ---

void HubDial::probe() {
  const std::string hello = store::greeting(store::Dialect::d, 4711);
  (void)!send(fd_.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
  watch_->start(io::kReadable, [this](int) { read_probe(); });
  timer_.start(kProbePatience, [this] { read_probe(); });
}

void HubDial::read_probe() {
  std::string expected;
  store::put_u32(expected, 4711);
  std::array<char, 4> echo{};
  const ssize_t got = recv(fd_.get(), echo.data(), echo.size(), 0);
  if (got == static_cast<ssize_t>(echo.size()) &&
      std::string_view(echo.data(), echo.size()) == expected)
    return give_up({Errc::invalid_input, what() + ": a c10d store (TCPStore) answers there",
                    "agents of torchrun take part? then give all agents --rdzv-backend c10d; else "
                    "check host and port of --rdzv-endpoint",
                    0});
  Error closed = fail_sys(what(), ECONNRESET).value();
  closed.message =
      what() +
      ": the connection was closed during the greeting (a PyTorch before 2.5 hosts it, or it is "
      "another program)";
  next_address(std::move(closed));
}

}  // namespace lockstep::rendezvous::hub
