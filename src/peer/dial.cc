#include "peer/dial.h"

#include "base/text.h"
#include "io/resolve.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace lockstep::peer {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kConnectTime{3};
constexpr std::chrono::seconds kHandshakeTime{5};
constexpr int kMostTries = 3;

struct Trial {
  std::string address;
  io::Fd fd;
};

std::optional<Trial> begin_trial(const std::string& address, int port) {
  const auto resolved = io::resolve_numeric(address, port);
  if (!resolved) return std::nullopt;
  const io::Address& to = resolved->addresses.front();
  io::Fd fd(socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // EINPROGRESS: the result shows when the socket becomes writable.
  if (!fd || (connect(fd.get(), to.get(), to.size) != 0 && errno != EINPROGRESS))
    return std::nullopt;
  return Trial{address, std::move(fd)};
}

bool is_connected(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

// Removes and returns the trials that have an answer now.
std::vector<Trial> answered(std::vector<Trial>& trials, milliseconds limit) {
  std::vector<pollfd> waits;
  waits.reserve(trials.size());
  for (const Trial& trial : trials)
    waits.push_back({trial.fd.get(), POLLOUT, 0});
  std::vector<Trial> found;
  if (poll(waits.data(), waits.size(), static_cast<int>(limit.count())) <= 0) return found;
  // Backwards, because found ones are erased.
  for (std::size_t i = waits.size(); i-- > 0;) {
    if (waits[i].revents == 0) continue;
    found.push_back(std::move(trials[i]));
    trials.erase(trials.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::reverse(found.begin(), found.end());
  return found;
}

// nullopt: no address works. last: the error of the last failed handshake, if there was one.
std::optional<Dialed> try_all(const std::vector<std::string>& addresses, std::uint16_t port,
                              const std::string& key, std::string& last) {
  const auto end = Clock::now() + kConnectTime;
  std::vector<Trial> trials;
  for (const std::string& address : addresses)
    if (auto trial = begin_trial(address, port)) trials.push_back(std::move(*trial));
  while (!trials.empty()) {
    const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
    if (left.count() <= 0) break;
    for (Trial& trial : answered(trials, left)) {
      // poll() reports a refused connection as writable, too.
      if (!is_connected(trial.fd.get())) continue;
      // TLS runs blocking, with the socket's own timeouts.
      const int flags = fcntl(trial.fd.get(), F_GETFL);
      if (flags < 0 || fcntl(trial.fd.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) continue;
      auto channel =
          // Many addresses may answer: private ranges exist on several networks.
          SecretChannel::open(std::move(trial.fd), key, SecretChannel::Side::takes, kHandshakeTime);
      if (channel) return Dialed{std::move(*channel), trial.address};
      last = trial.address + ": " + channel.error().message;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Dialed> dial(const std::vector<std::string>& addresses, std::uint16_t port,
                    const std::string& key) {
  std::string last;
  // The serving host may drop a handshake when many strangers connect at once. So a failed
  // handshake is worth another try, a failed connect is not.
  for (int tries = 0; tries == 0 || (tries < kMostTries && !last.empty()); ++tries)
    if (auto dialed = try_all(addresses, port, key, last)) return std::move(*dialed);
  return fail(Errc::unavailable, fmt::format("it cannot be reached at any of {}, port {}{}",
                                             printable(join(addresses, ", ")), port,
                                             last.empty() ? "" : " (" + printable(last) + ")"));
}

}  // namespace lockstep::peer
