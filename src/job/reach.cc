#include "job/reach.h"

#include "io/listen.h"
#include "io/resolve.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::job {
namespace {

constexpr int kBacklog = 512;
// After the first success, the other addresses get this much more time.
constexpr std::chrono::milliseconds kGrace{200};

// A connection attempt to one address.
struct Trial {
  io::Fd fd;
  std::string heard;
  enum class Stage { open, reached, failed } stage = Stage::failed;
};

Trial begin_trial(const std::string& address, int port) {
  Trial trial;
  const auto resolved = io::resolve_numeric(address, port);
  if (!resolved) return trial;
  const io::Address& to = resolved->addresses.front();
  trial.fd = io::Fd(socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!trial.fd) return trial;
  // connect() continues in the background; poll() tells the result.
  if (connect(trial.fd.get(), to.get(), to.size) == 0 || errno == EINPROGRESS)
    trial.stage = Trial::Stage::open;
  return trial;
}

void listen_to(Trial& trial, const std::string& secret) {
  std::array<char, 128> bytes;
  const ssize_t got = read(trial.fd.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) trial.heard.append(bytes.data(), static_cast<std::size_t>(got));
  // A private address may belong to a different machine in another network. Only the secret proves
  // that the right host answers.
  if (trial.heard == secret) {
    trial.stage = Trial::Stage::reached;
    // Longer than the secret: another program answers there.
  } else if (got <= 0 || trial.heard.size() > secret.size()) {
    trial.stage = Trial::Stage::failed;
  }
}

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

std::vector<std::string> reached_addresses(const std::vector<std::string>& addresses, int port,
                                           const std::string& secret,
                                           std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + limit;
  std::vector<Trial> trials;
  // All addresses are tried at once: most of a host's addresses lead nowhere from another network,
  // and each would cost the whole limit.
  trials.reserve(addresses.size());
  for (const std::string& address : addresses)
    trials.push_back(begin_trial(address, port));
  while (true) {
    std::vector<pollfd> waits;
    std::vector<Trial*> of;
    for (Trial& trial : trials)
      if (trial.stage == Trial::Stage::open) {
        waits.push_back({trial.fd.get(), POLLIN, 0});
        of.push_back(&trial);
      }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (waits.empty() || left.count() <= 0) break;
    if (poll(waits.data(), waits.size(), static_cast<int>(left.count())) < 0 && errno != EINTR)
      break;
    for (std::size_t i = 0; i < waits.size(); ++i)
      if (waits[i].revents != 0) listen_to(*of[i], secret);
    if (std::any_of(trials.begin(), trials.end(),
                    [](const Trial& trial) { return trial.stage == Trial::Stage::reached; }))
      end = std::min(end, Clock::now() + kGrace);
  }
  std::vector<std::string> reached;
  for (std::size_t i = 0; i < trials.size(); ++i)
    if (trials[i].stage == Trial::Stage::reached) reached.push_back(addresses[i]);
  return reached;
}

}  // namespace lockstep::job
