#include "rent/sshd_probe.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string_view>
#include <utility>

namespace lockstep::rent {
namespace {

// A booting machine answers nothing. After a short timeout the next try may succeed.
constexpr std::chrono::milliseconds kConnectPatience{1500};
constexpr std::chrono::seconds kGreetingPatience{10};
constexpr std::string_view kGreeting = "SSH-";

}  // namespace

SshdProbe::SshdProbe(io::Loop& loop, const std::string& address, int port,
                     std::function<void(Status)> done)
    : done_(std::move(done)), patience_(loop) {
  // Report through the timer: the caller does not hold this object yet.
  if (Status begun = connect(address, port); !begun) {
    patience_.start({}, [this, begun = std::move(begun)] { finish(begun); });
    return;
  }
  watch_ = std::make_unique<io::Watch>(loop, fd_.get());
  watch_->start(io::kWritable, [this](int) { on_ready(); });
  patience_.start(kConnectPatience, [this] { finish(fail(Errc::timeout, "it does not answer")); });
}

Status SshdProbe::connect(const std::string& address, int port) {
  sockaddr_storage place{};
  auto* v4 = reinterpret_cast<sockaddr_in*>(&place);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&place);
  socklen_t size = sizeof *v4;
  if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<std::uint16_t>(port));
  } else if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<std::uint16_t>(port));
    size = sizeof *v6;
  } else {
    return fail(Errc::invalid_input, printable(address) + " is no address");
  }
  fd_ = io::Fd(socket(place.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_) return fail_sys("make a socket", errno);
  if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&place), size) != 0 && errno != EINPROGRESS)
    return fail(Errc::unavailable, to_lower(errno_text(errno)));
  return {};
}

void SshdProbe::on_ready() {
  if (!std::exchange(connected_, true)) {
    int problem = 0;
    socklen_t size = sizeof problem;
    getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
    if (problem != 0) return finish(fail(Errc::unavailable, to_lower(errno_text(problem))));
    patience_.start(kGreetingPatience, [this] {
      finish(fail(Errc::timeout, "the port takes connections, but no SSH server greets there"));
    });
    return watch_->want(io::kReadable);
  }
  std::array<char, kGreeting.size()> bytes;
  const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return finish(fail(Errc::unavailable, "the port closes connections at once"));
  // recv() may return a part of the greeting: any beginning of "SSH-" counts.
  if (kGreeting.starts_with(std::string_view(bytes.data(), static_cast<std::size_t>(got))))
    return finish({});
  finish(fail(Errc::unavailable, "the answer is not from an SSH server"));
}

void SshdProbe::finish(Status status) {
  watch_.reset();
  patience_.cancel();
  const auto done = std::exchange(done_, {});  // may destroy this object
  if (done) done(std::move(status));
}

}  // namespace lockstep::rent
