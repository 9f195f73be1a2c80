// The greeting, and the recognition of programs that are not a hub.
#include "rendezvous/hub/hub_dial.h"

#include "base/text.h"
#include "io/place_text.h"
#include "io/resolve.h"
#include "rendezvous/hub/hub_refusal.h"
#include "store/wire.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::rendezvous::hub {
namespace {

using std::chrono::milliseconds;
// Agents that are started together arrive within milliseconds, but the host is not always first.
constexpr milliseconds kFirstPause(5);
constexpr milliseconds kLongestPause(500);
constexpr milliseconds kLastRound(20);
constexpr milliseconds kConnectPatience(2500);
constexpr milliseconds kGreetPatience(8000);
// An attempt shortly before the deadline still gets this long. Otherwise the user would read about
// the haste of that attempt, and not about the host's problem.
constexpr milliseconds kLeastGreetPatience(1000);
constexpr milliseconds kProbePatience(2000);
constexpr const char* kNoGreeting = "connected, but no answer to the greeting";

io::DialRules rules(const HubDialSettings& settings) {
  io::DialRules rules;
  rules.patience = settings.patience;
  rules.least_for_address = kConnectPatience;
  rules.most_for_address = kConnectPatience;
  rules.first_pause = kFirstPause;
  rules.longest_pause = kLongestPause;
  // Make the last attempt at the very end of the patience, not a pause earlier. Another node may
  // take over just then.
  rules.last_round = kLastRound;
  rules.refused_patience = settings.refused_patience;
  return rules;
}

}  // namespace

HubDial::HubDial(io::Loop& loop, HubDialSettings settings, Done done)
    : loop_(loop),
      settings_(std::move(settings)),
      done_(std::move(done)),
      timer_(loop),
      dialer_(loop, {what(), settings_.host, settings_.port}, rules(settings_),
              {.connected = [this](io::Fd fd) { greet(std::move(fd)); },
               .round_failed =
                   [this](const Error& error) {
                     if (const auto tell = on_attempt_) tell(error);
                   },
               .gave_up = [this](Error error) { give_up(std::move(error)); }}) {}

std::string HubDial::what() const {
  return "reach the rendezvous at " + io::place_text(printable(settings_.host), settings_.port);
}

std::string HubDial::trouble() const {
  using Dialing = io::Dialer::Stage;
  if (const auto& last = dialer_.error()) {
    const std::string place = what() + ": ";
    return last->message.starts_with(place) ? last->message.substr(place.size()) : last->message;
  }
  switch (dialer_.stage()) {
    case Dialing::looking_up:
      return "its name is being looked up";
    case Dialing::connecting:
      return "no answer yet from " + dialer_.address();
    case Dialing::connected:
      return kNoGreeting;
    case Dialing::pausing:
      break;
  }
  return {};
}

// Goes on with the next address: the program at this address is not a hub of this job, or not yet.
void HubDial::next_address(Error error, bool answered) {
  drop();
  dialer_.go_on(std::move(error), answered);
}

void HubDial::drop() {
  stream_.reset();
  watch_.reset();
  fd_.reset();
  timer_.cancel();
}

void HubDial::give_up(Error error) {
  const std::chrono::duration<double> took = io::Clock::now() - dialer_.since();
  drop();
  if (took >= milliseconds(100))
    error.message += fmt::format(", gave up after {:.1f} s", took.count());
  if (const auto done = std::exchange(done_, nullptr)) done(tl::make_unexpected(std::move(error)));
}

// --- the greeting ---

void HubDial::greet(io::Fd fd) {
  hub_nonce_.reset();
  nonce_ = random_nonce();
  const io::Duration left = dialer_.until() - io::Clock::now();
  // The kernel accepts connections even while the host's process is frozen.
  timer_.start(std::clamp<io::Duration>(left, kLeastGreetPatience, kGreetPatience), [this] {
    Error error = fail_sys(what(), ETIMEDOUT).value();
    error.message += fmt::format(": {}", kNoGreeting);
    next_address(std::move(error));
  });
  stream_ = std::make_unique<HubStream>(
      loop_, std::move(fd),
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
  // A hub challenges once, and only a node with a token.
  if (const auto* challenge = std::get_if<Challenge>(&frame);
      challenge != nullptr && settings_.token && !hub_nonce_) {
    hub_nonce_ = challenge->nonce;
    return stream_->send(Proof{proof(Side::agent)});
  }
  const auto* welcome = std::get_if<Welcome>(&frame);
  // A hub of the right version answers a hello with nothing else.
  if (welcome == nullptr)
    return give_up(
        {Errc::corrupt,
         fmt::format("{}: unexpected answer '{}' to the greeting", what(), frame_name(frame)),
         {},
         0});
  const bool proven = !settings_.token || (hub_nonce_ && same_mac(welcome->mac, proof(Side::hub)));
  // A program that listens in the host's place cannot make this proof.
  if (!proven)
    return give_up({Errc::denied, what() + ": the host does not know the job token",
                    "give every node the same --rdzv-token-file", 0});
  timer_.cancel();
  // Only a proven hub may send large frames.
  stream_->set_limit(FrameReader::kFromHub);
  io::Address own;
  own.size = sizeof own.storage;
  // Other nodes may reach this node by the local address of this connection.
  const bool known =
      getsockname(stream_->fd(), reinterpret_cast<sockaddr*>(&own.storage), &own.size) == 0;
  const auto done = std::exchange(done_, nullptr);
  if (done) done(Connected{std::move(stream_), *welcome, known ? io::address_text(own) : ""});
}

void HubDial::on_refusal(const Refusal& refusal) {
  Error error = refusal_error(refusal).within(what());
  const auto now = io::Clock::now();
  // Only another run id is worth a retry: the previous job's hub may be about to close the port.
  if (refusal.why != Why::run_id) return give_up(std::move(error));
  if (!other_job_since_) other_job_since_ = now;
  if (now - *other_job_since_ >= settings_.other_job_patience) return give_up(std::move(error));
  next_address(std::move(error), true);
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
  // A TCPStore closes the connection without a word when it reads our greeting.
  if (!stream_->heard_anything()) {
    drop();
    return dialer_.once_more([this](io::Fd fd) { probe(std::move(fd)); });
  }
  Error closed = fail_sys(what(), ECONNRESET).value();
  closed.message = what() + ": " + error.message + " during the greeting";
  next_address(std::move(closed));
}

// --- closed without a word: probe for a TCPStore ---

void HubDial::probe(io::Fd fd) {
  fd_ = std::move(fd);
  // PyTorch's own handshake, which a TCPStore echoes. 4711 is any number.
  const std::string hello = store::greeting(store::Dialect::d, 4711);
  // A failed send shows as a missing echo.
  (void)!send(fd_.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
  watch_ = std::make_unique<io::Watch>(loop_, fd_.get());
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
    return give_up(
        {Errc::invalid_input, what() + ": a c10d store (TCPStore) answers there",
         "if agents of torchrun take part give all agents --rdzv-backend c10d; otherwise "
         "check host and port of --rdzv-endpoint",
         0});
  Error closed = fail_sys(what(), ECONNRESET).value();
  closed.message = what() +
                   ": the connection was closed during the greeting (by a store of PyTorch before "
                   "2.5, or by another "
                   "program)";
  next_address(std::move(closed));
}

}  // namespace lockstep::rendezvous::hub
