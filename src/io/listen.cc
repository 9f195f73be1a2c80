// Opens listening sockets: look-up, socket, bind, listen.
#include "io/listen.h"

#include "io/system_names.h"

#include <fmt/core.h>

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <random>
#include <string_view>

namespace lockstep::io {
namespace {

// Bounds the wait for a program that binds a port without listening: at most a tenth of a second.
constexpr int kMostRaces = 100;
constexpr unsigned kLongestPauseUs = 2000;
constexpr int kOnlyBind = -1;  // as a backlog: do not listen

std::string place(const std::string& host, int port) {
  return fmt::format("{}:{}", host.empty() ? "*" : host, port);
}

// raced: the port was free at bind(), and belongs to another program now.
Result<Listener> try_to_listen(const sockaddr* address, socklen_t size, const std::string& name,
                               int backlog, bool& raced) {
  Fd fd(socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fail_sys("listen on " + name, errno);
  // SO_REUSEADDR does not allow two listeners on one port on Linux, so a taken port is still
  // noticed.
  const int on = 1;
  const int off = 0;
  // Connections of an earlier server on this port may still be in TIME_WAIT.
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address->sa_family == AF_INET6) {
    // One socket for both: an IPv6 socket also accepts IPv4, unless told otherwise.
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  const bool is_bound = bind(fd.get(), address, size) == 0;
  if (!is_bound || (backlog != kOnlyBind && ::listen(fd.get(), backlog) != 0)) {
    raced = is_bound && errno == EADDRINUSE;
    return fail_sys("listen on " + name, errno);
  }
  sockaddr_storage bound{};
  socklen_t bound_size = sizeof bound;
  // Ask for the port: with port 0 the kernel has chosen.
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &bound_size) != 0) {
    return fail_sys("getsockname", errno);
  }
  const in_port_t port = bound.ss_family == AF_INET6
                             ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                             : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port;
  return Listener{std::move(fd), ntohs(port)};
}

// If two programs bind the same port at the same moment, the kernel refuses listen() to both. Each
// one then closes its socket and tries again after a random pause.
Result<Listener> listen_at(const sockaddr* address, socklen_t size, const std::string& name,
                           int backlog) {
  std::minstd_rand pause(
      static_cast<unsigned>(getpid()) ^
      static_cast<unsigned>(std::chrono::steady_clock::now().time_since_epoch().count()));
  for (int races = 0;; ++races) {
    bool raced = false;
    auto listener = try_to_listen(address, size, name, backlog, raced);
    if (!raced || races == kMostRaces) return listener;
    usleep(static_cast<useconds_t>(pause() % kLongestPauseUs));
  }
}

Result<Listener> listen_everywhere(int port, int backlog) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_any;
  six.sin6_port = htons(static_cast<in_port_t>(port));
  auto listener =
      listen_at(reinterpret_cast<const sockaddr*>(&six), sizeof six, place("", port), backlog);
  // No IPv6 on this machine: listen on IPv4 only. A taken port is final.
  if (listener || listener.error().code == Errc::already_exists) return listener;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_ANY);
  four.sin_port = six.sin6_port;
  return listen_at(reinterpret_cast<const sockaddr*>(&four), sizeof four, place("", port), backlog);
}

}  // namespace

Result<Listener> open_listener(const std::string& host, int port, int backlog) {
  if (port < 0 || port > 65535)
    return fail(Errc::invalid_input, fmt::format("the port must be 0 to 65535 (got {})", port));
  if (host.empty()) return listen_everywhere(port, backlog);
  // Only IPv4 for "localhost": a single listener cannot have both loopback addresses.
  const auto found = look_up(host == "localhost" ? "127.0.0.1" : host, port, Names::any);
  if (!found) {
    Error error = found.error();
    // An unknown host is wrong input here: waiting would not help.
    error.code = Errc::invalid_input;
    return tl::make_unexpected(std::move(error).within("listen on " + place(host, port)));
  }
  Error error = fail(Errc::not_found, "no address for " + host).value();
  for (const Address& address : found->addresses) {
    auto listener = listen_at(address.get(), address.size, place(host, port), backlog);
    if (listener) return listener;
    error = std::move(listener).error();
  }
  return Failure(std::move(error));
}

Result<Listener> reserve_port(int port) {
  return listen_everywhere(port, kOnlyBind);
}

namespace {

std::string name_of(sockaddr_storage& end, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* address = reinterpret_cast<sockaddr*>(&end);
  if (getnameinfo(address, size, host.data(), host.size(), port.data(), port.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "unknown peer";
  }
  std::string_view text = host.data();
  constexpr std::string_view kMapped = "::ffff:";
  // The IPv6 socket sees IPv4 peers as ::ffff:10.0.0.7.
  if (text.starts_with(kMapped) && text.find('.') != std::string_view::npos) {
    text.remove_prefix(kMapped.size());
  }
  const bool bracketed = text.find(':') != std::string_view::npos;
  return fmt::format(fmt::runtime(bracketed ? "[{}]:{}" : "{}:{}"), text, port.data());
}

using NameCall = int (*)(int, sockaddr*, socklen_t*);

std::string name_by(NameCall call, int fd) {
  sockaddr_storage end{};
  socklen_t size = sizeof end;
  if (call(fd, reinterpret_cast<sockaddr*>(&end), &size) != 0) return "unknown peer";
  return name_of(end, size);
}

}  // namespace

std::string peer_name(int fd) {
  return name_by([](int at, sockaddr* to, socklen_t* size) { return getpeername(at, to, size); },
                 fd);
}

std::string local_name(int fd) {
  return name_by([](int at, sockaddr* to, socklen_t* size) { return getsockname(at, to, size); },
                 fd);
}

}  // namespace lockstep::io
