// Speaks CONNECT with a proxy.
#include "http/tunnel.h"

#include "io/place_text.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::http {

Tunnel::Tunnel(io::Loop& loop, io::Fd fd, Proxy proxy, const std::string& host, int port, Done done)
    : proxy_(std::move(proxy)),
      place_(io::place_text(host, port)),
      done_(std::move(done)),
      stream_(loop, std::move(fd), nullptr) {
  stream_.listen({[this](std::string_view bytes) { on_bytes(bytes); },
                  [this](Status status) {
                    const std::string what = proxy_.text() + " did not connect to " + place_;
                    if (!status)
                      return finish(tl::make_unexpected(std::move(status).error().within(what)));
                    finish(fail(Errc::unavailable, what + ": connection closed"));
                  }});
  std::string request = fmt::format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n", place_);
  if (!proxy_.authorization.empty())
    request += fmt::format("Proxy-Authorization: {}\r\n", proxy_.authorization);
  stream_.write(request + "\r\n");
}

void Tunnel::on_bytes(std::string_view bytes) {
  std::string body;
  const std::size_t taken = parser_.feed(bytes, body);
  if (parser_.state() == ResponseParser::State::bad) {
    return finish(fail(Errc::corrupt, fmt::format("{} did not connect to {}: {}", proxy_.text(),
                                                  place_, parser_.error())));
  }
  if (parser_.state() != ResponseParser::State::complete) return;
  const int status = parser_.head().status;
  if (status < 200 || status > 299) return finish(refused(status));
  // The proxy may send nothing before we do: such bytes would be taken for the server's.
  if (taken != bytes.size()) {
    return finish(
        fail(Errc::corrupt, proxy_.text() + " sends bytes before the first request to " + place_));
  }
  // The proxy is transparent from here on. TLS runs through the tunnel, so the proxy sees neither
  // request nor token.
  finish(stream_.release());
}

Failure Tunnel::refused(int status) const {
  constexpr int kNoPassword = 407;
  constexpr int kForbidden = 403;
  std::string hint = "name the host in NO_PROXY if it can be reached without the proxy";
  if (status == kNoPassword)
    hint = fmt::format("give the proxy user and password: {}=http://USER:PASSWORD@{}",
                       proxy_.source, io::place_text(proxy_.host, proxy_.port));
  return fail(status == kNoPassword || status == kForbidden ? Errc::denied : Errc::unavailable,
              fmt::format("{} refuses to connect to {}: HTTP {}", proxy_.text(), place_, status),
              std::move(hint));
}

void Tunnel::finish(Result<io::Fd> result) {
  const auto call = std::exchange(done_, nullptr);
  if (call) call(std::move(result));
}

}  // namespace lockstep::http
