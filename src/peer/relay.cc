#include "peer/relay.h"

#include "base/text.h"
#include "peer/dial.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

namespace lockstep::peer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFan = 2;
constexpr int kBacklog = 32;
// connections whose handshake has not failed yet count, too
constexpr std::size_t kMostTakers = 16;
constexpr std::chrono::seconds kHandshakeTime{5};
constexpr std::chrono::seconds kSilence{15};
// A giver without new bytes sends an empty piece this often, well within kSilence of the taker.
constexpr std::chrono::seconds kSignOfLife{2};
constexpr std::chrono::minutes kLongest{10};
constexpr std::chrono::milliseconds kPause{50};
constexpr std::size_t kPiece = 256UL << 10;
constexpr std::uint32_t kNothingMore = 0xFFFFFFFF;
constexpr std::size_t kWishBytes = 12;
constexpr std::size_t kHeadBytes = 4;

template <class Number>
std::string bytes_of(Number number) {
  // The wire is little-endian; see docs/protocols/relay.md.
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

template <class Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

}  // namespace

// The hosts form a tree in which each host gives to two. The source then sends each byte twice,
// however many hosts there are.
int relay_giver(int host) {
  return host == 0 ? -1 : (host - 1) / kFan;
}

int relay_takers(int host, int hosts) {
  return std::clamp(hosts - 1 - host * kFan, 0, kFan);
}

Result<std::unique_ptr<RelayGiver>> RelayGiver::open(const std::vector<int>& ports, std::string key,
                                                     int takers, std::size_t files) {
  std::optional<io::Listener> listener;
  Error error = fail(Errc::invalid_input, "no port is given to listen on").value();
  for (const int port : ports) {
    // All hosts know the list of ports; the first free one is found by trying.
    auto opened = io::open_listener("", port, kBacklog);
    if (opened) listener.emplace(std::move(*opened));
    if (listener) break;
    error = std::move(opened).error();
  }
  if (!listener) return Failure(std::move(error));
  LOCKSTEP_TRY_ASSIGN(io::Pipe wake, io::make_pipe());
  std::unique_ptr<RelayGiver> giver(
      new RelayGiver(std::move(*listener), std::move(wake), std::move(key), takers, files));
  giver->thread_ = std::thread([raw = giver.get()] { raw->listen(); });
  return giver;
}

RelayGiver::RelayGiver(io::Listener listener, io::Pipe wake, std::string key, int takers,
                       std::size_t files)
    : listener_(std::move(listener)),
      wake_(std::move(wake)),
      key_(std::move(key)),
      files_(files),
      missing_(takers) {}

RelayGiver::~RelayGiver() {
  stop();
}

Status RelayGiver::begin(std::size_t file, const std::string& path) {
  io::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_sys("read " + path, errno);
  // The serving threads read these under the mutex.
  const std::lock_guard lock(mutex_);
  files_.at(file).fd = std::move(fd);
  return {};
}

void RelayGiver::has(std::size_t file, std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    files_.at(file).bytes = bytes;
  }
  changed_.notify_all();
}

void RelayGiver::finish(std::chrono::milliseconds patience) {
  {
    std::unique_lock lock(mutex_);
    // Expected hosts first, then those still being served.
    changed_.wait_for(lock, patience, [this] { return missing_ <= 0; });
    changed_.wait_for(lock, kLongest, [this] { return guests_.empty(); });
  }
  stop();
}

void RelayGiver::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    // A blocked read or write of a serving thread ends by this.
    for (const int each : guests_)
      // Do not close: the thread still uses the descriptor, and the number could be reused at once.
      shutdown(each, SHUT_RDWR);
  }
  changed_.notify_all();
  // Wakes listen() out of poll().
  (void)io::write_all(wake_.write.get(), "x", "a pipe");
  thread_.join();
}

void RelayGiver::listen() {
  for (;;) {
    std::array<pollfd, 2> waits = {pollfd{wake_.read.get(), POLLIN, 0},
                                   pollfd{listener_.fd.get(), POLLIN, 0}};
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) break;
    if (waits[0].revents != 0) break;
    if (waits[1].revents != 0) let_in();
  }
  listener_.fd.reset();  // late callers are refused at once instead of waiting
  for (Taker& each : takers_)
    each.thread.join();
}

void RelayGiver::let_in() {
  io::Fd socket(accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  // Joins the threads that have ended: nothing else does.
  std::erase_if(takers_, [](Taker& each) {
    if (!*each.over) return false;
    each.thread.join();
    return true;
  });
  // Strangers must not exhaust threads.
  if (!socket || takers_.size() == kMostTakers) return;
  auto over = std::make_shared<std::atomic<bool>>(false);
  takers_.push_back({std::thread([this, over, taken = std::move(socket)]() mutable {
                       serve(std::move(taken));
                       *over = true;
                     }),
                     over});
}

void RelayGiver::serve(io::Fd socket) {
  auto channel =
      SecretChannel::open(std::move(socket), key_, SecretChannel::Side::serves, kHandshakeTime);
  if (!channel) return;
  channel->set_patience(kSilence);
  {
    const std::lock_guard lock(mutex_);
    // stop() has already shut down its list of guests.
    if (closing_) return;
    guests_.push_back(channel->socket());
  }
  // A taker that has everything and a broken connection count alike: after a break the taker gets
  // the rest from elsewhere.
  (void)give(*channel);
  {
    const std::lock_guard lock(mutex_);
    std::erase(guests_, channel->socket());
    --missing_;
  }
  changed_.notify_all();
}

Status RelayGiver::give(SecretChannel& channel) {
  for (;;) {
    // A taker may be silent while checking its existing files.
    LOCKSTEP_TRY_ASSIGN(const std::string wish, channel.read(kWishBytes));
    const auto file = number_at<std::uint32_t>(wish, 0);
    if (file == kNothingMore) return {};
    // Only a taker with the key gets here, so this is a bug or another version.
    if (file >= files_.size()) return fail(Errc::corrupt, "the taker asks for an unknown file");
    LOCKSTEP_TRY(give_file(channel, file, number_at<std::uint64_t>(wish, sizeof file)));
  }
}

Status RelayGiver::give_file(SecretChannel& channel, std::size_t file, std::uint64_t size) {
  std::string piece;
  for (std::uint64_t at = 0; at < size;) {
    std::uint64_t there = 0;
    int fd = -1;
    {
      // Woken by has(), or after kSignOfLife to show that this host lives.
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kSignOfLife, [&] { return closing_ || files_[file].bytes > at; });
      if (closing_) return fail(Errc::canceled, "this host has waited for long enough");
      there = files_[file].bytes;
      fd = files_[file].fd.get();
    }
    // An empty piece is a sign of life while this host waits for bytes.
    if (there <= at) {
      LOCKSTEP_TRY(channel.write(bytes_of(std::uint32_t{0})));
      continue;
    }
    const std::size_t most = std::min<std::uint64_t>({kPiece, there - at, size - at});
    piece.resize(kHeadBytes + most);
    // pread(): several threads share the descriptor.
    const ssize_t got = pread(fd, piece.data() + kHeadBytes, most, static_cast<off_t>(at));
    if (got <= 0) return fail_sys("read a file that another host wants", errno);
    piece.resize(kHeadBytes + static_cast<std::size_t>(got));
    piece.replace(0, kHeadBytes, bytes_of(static_cast<std::uint32_t>(got)));
    LOCKSTEP_TRY(channel.write(piece));
    at += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<RelayTaker> RelayTaker::open(const std::vector<std::string>& addresses,
                                    const std::vector<int>& ports, const std::string& key,
                                    std::chrono::milliseconds patience) {
  const auto end = Clock::now() + patience;
  std::string last = "no port is tried";
  do {
    for (const int port : ports) {
      auto dialed = dial(addresses, static_cast<std::uint16_t>(port), key);
      if (dialed) {
        dialed->channel.set_patience(kSilence);
        return RelayTaker(std::move(dialed->channel));
      }
      last = dialed.error().message;
    }
    // The giver may be starting only now.
    std::this_thread::sleep_for(kPause);
  } while (Clock::now() < end);
  return fail(Errc::unavailable, last);
}

Status RelayTaker::take(std::size_t file, std::uint64_t size,
                        const std::function<Status(std::string_view)>& put) {
  LOCKSTEP_TRY(channel_.write(bytes_of(static_cast<std::uint32_t>(file)) + bytes_of(size)));
  std::string piece;
  for (std::uint64_t at = 0; at < size;) {
    LOCKSTEP_TRY_ASSIGN(const std::string head, channel_.read(kHeadBytes));
    const auto length = number_at<std::uint32_t>(head, 0);
    if (length > kPiece || length > size - at)
      return fail(Errc::corrupt, "the other host sends more than was asked for");
    piece.resize(length);
    LOCKSTEP_TRY(channel_.read(piece.data(), length));
    if (length > 0) LOCKSTEP_TRY(put(piece));
    at += length;
  }
  return {};
}

void RelayTaker::finish() {
  // Only a courtesy: without it the giver notices the closed connection.
  (void)channel_.write(bytes_of(kNothingMore) + bytes_of(std::uint64_t{0}));
}

}  // namespace lockstep::peer
