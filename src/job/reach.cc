#include "job/reach.h"

#include "io/listen.h"
#include "io/resolve.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace lockstep::job {
namespace {

constexpr int kBacklog = 512;
// Once every host has answered, the other addresses get this much more time.
constexpr std::chrono::milliseconds kGrace{200};

}  // namespace

Result<std::unique_ptr<ReachedPlace>> ReachedPlace::open(io::Loop& loop, std::string secret) {
  LOCKSTEP_TRY_ASSIGN(io::Listener listener, io::open_listener("", 0, kBacklog));
  return std::unique_ptr<ReachedPlace>(
      new ReachedPlace(loop, std::move(listener.fd), listener.port, std::move(secret)));
}

ReachedPlace::ReachedPlace(io::Loop& loop, io::Fd fd, int port, std::string secret)
    : fd_(std::move(fd)), port_(port), secret_(std::move(secret)), watch_(loop, fd_.get()) {
  watch_.start(io::kReadable, [this](int) { on_guest(); });
}

void ReachedPlace::on_guest() {
  const io::Fd guest(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!guest) return;
  // The few bytes always fit into a new socket's buffer.
  if (send(guest.get(), secret_.data(), secret_.size(), MSG_NOSIGNAL) < 0) return;
}

// A connection attempt to one address.
struct ReachTrial::Call {
  std::size_t target = 0;
  std::string address;
  int port = 0;
  std::string secret;
  enum class Stage { open, reached, failed } stage = Stage::failed;
  std::string heard = {};
  io::Fd fd = {};
  std::unique_ptr<io::Watch> watch = {};  // after fd: destroyed first
};

ReachTrial::ReachTrial(io::Loop& loop, const std::vector<ReachTarget>& targets,
                       std::chrono::milliseconds limit, std::function<void(const Reached&)> done)
    : loop_(loop), done_(std::move(done)), targets_(targets.size()), timer_(loop) {
  // All addresses are tried at once: most of a host's addresses lead nowhere from another network,
  // and each would cost the whole limit.
  for (std::size_t i = 0; i < targets.size(); ++i)
    for (const std::string& address : targets[i].addresses) {
      calls_.push_back(std::make_unique<Call>(Call{
          .target = i, .address = address, .port = targets[i].port, .secret = targets[i].secret}));
      begin(*calls_.back());
    }
  timer_.start(limit, [this] { finish(); });
  look();
}

ReachTrial::~ReachTrial() = default;

void ReachTrial::begin(Call& call) {
  const auto resolved = io::resolve_numeric(call.address, call.port);
  if (!resolved) return;
  const io::Address& to = resolved->addresses.front();
  call.fd = io::Fd(socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!call.fd) return;
  // connect() continues in the background. A failure makes the socket readable too.
  if (connect(call.fd.get(), to.get(), to.size) != 0 && errno != EINPROGRESS) return;
  call.stage = Call::Stage::open;
  call.watch = std::make_unique<io::Watch>(loop_, call.fd.get());
  call.watch->start(io::kReadable, [this, at = &call](int) {
    listen_to(*at);
    look();
  });
}

void ReachTrial::listen_to(Call& call) {
  std::array<char, 128> bytes;
  const ssize_t got = read(call.fd.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) call.heard.append(bytes.data(), static_cast<std::size_t>(got));
  // A private address may belong to a different machine in another network. Only the secret proves
  // that the right host answers.
  if (call.heard == call.secret) {
    call.stage = Call::Stage::reached;
    // Longer than the secret: another program answers there.
  } else if (got <= 0 || call.heard.size() > call.secret.size()) {
    call.stage = Call::Stage::failed;
  }
  if (call.stage != Call::Stage::open) call.watch->stop();
}

// Ends the trial early: at once if no call is open, and soon if every target has answered.
void ReachTrial::look() {
  std::vector<bool> open(targets_);
  std::vector<bool> reached(targets_);
  for (const auto& call : calls_) {
    if (call->stage == Call::Stage::open) open[call->target] = true;
    if (call->stage == Call::Stage::reached) reached[call->target] = true;
  }
  bool all_done = true;
  bool all_told = true;
  for (std::size_t i = 0; i < targets_; ++i) {
    all_done = all_done && !open[i];
    all_told = all_told && (reached[i] || !open[i]);
  }
  // In the next turn: the caller must have the trial before `done` comes.
  if (all_done) return timer_.start({}, [this] { finish(); });
  if (all_told && !std::exchange(in_grace_, true)) timer_.start(kGrace, [this] { finish(); });
}

void ReachTrial::finish() {
  Reached reached(targets_);
  for (const auto& call : calls_) {
    if (call->watch) call->watch->stop();
    if (call->stage == Call::Stage::reached) reached[call->target].push_back(call->address);
  }
  if (const auto done = std::exchange(done_, nullptr)) done(reached);
}

}  // namespace lockstep::job
