// A connection per request, and the listener.
#include "http/server.h"

#include "io/listen.h"
#include "io/tcp_probe.h"
#include "io/unix_socket.h"

#include <fmt/core.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <string_view>
#include <utility>

namespace lockstep::http {
namespace {

// The kernel would otherwise let megabytes wait for a viewer that does not read.
constexpr int kViewerSendBuffer = 128 << 10;

}  // namespace

// Reads a request, writes the answer, then discards bytes until the peer closes. Closing with
// unread bytes would reset the connection, and the peer could lose the answer.
class Server::Connection {
 public:
  Connection(Server& server, std::uint64_t id, io::Fd fd)
      : server_(server),
        id_(id),
        fd_(std::move(fd)),
        watch_(server.loop_, fd_.get()),
        timer_(server.loop_) {
    watch_.start(io::kReadable, [this](int) { step(); });
    // The limit is for the whole exchange: a client must not keep a connection for ever by a byte
    // now and then.
    timer_.start(server.limits_.timeout, [this] { close(); });
  }

  // Sends more to a viewer, or as soon as the viewer reads. May destroy *this.
  void push(std::string_view bytes) {
    if (output_.size() - written_ + bytes.size() > server_.limits_.viewer_bytes) {
      close();
      return;
    }
    output_.erase(0, written_);
    written_ = 0;
    output_ += bytes;
    write_view();
  }

 private:
  enum class Phase { read, write, drain, view };

  void step() {
    if (phase_ == Phase::read && !read_request()) return;
    if (phase_ == Phase::view) return step_view();
    if (phase_ == Phase::write && !write_answer()) return;
    if (phase_ == Phase::drain) discard();
  }

  // Returns true once an answer is ready to be written.
  bool read_request() {
    char chunk[4096];
    while (parser_.state() == RequestParser::State::more) {
      const ssize_t got = recv(fd_.get(), chunk, sizeof chunk, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return false;
      if (got <= 0) return close();
      parser_.feed({chunk, static_cast<std::size_t>(got)});
    }
    const bool complete = parser_.state() == RequestParser::State::complete;
    Response response = complete
                            ? server_.answer(parser_.request())
                            : Response{parser_.error_status(), "text/plain; charset=utf-8",
                                       fmt::format("{}\n", reason_phrase(parser_.error_status()))};
    const bool head_only = complete && parser_.request().method == "HEAD";
    if (response.goes_on && server_.viewers_.size() >= server_.limits_.viewers)
      response = {.status = 503, .body = "too many viewers\n"};
    output_ = print_response(response, head_only);
    phase_ = Phase::write;
    if (response.goes_on && !head_only) become_viewer();
    return true;
  }

  void become_viewer() {
    phase_ = Phase::view;
    server_.viewers_.insert(server_.connections_.extract(id_));
    setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUF, &kViewerSendBuffer, sizeof kViewerSendBuffer);
    io::probe_server(fd_.get());
  }

  // Viewers have nothing more to say. Their end must be noticed.
  void step_view() {
    if (discard()) write_view();
  }

  void write_view() {
    const std::size_t before = written_;
    if (!send_output()) return;
    if (written_ == output_.size()) {
      timer_.cancel();
      watch_.want(io::kReadable);
    } else {
      // The time begins when the first byte has to wait, and anew with each byte that is taken.
      if (written_ > before || !timer_.active())
        timer_.start(server_.limits_.timeout, [this] { close(); });
      watch_.want(io::kReadable | io::kWritable);
    }
  }

  // Sends what the peer takes now. Returns false if the connection is closed.
  bool send_output() {
    while (written_ < output_.size()) {
      const ssize_t put =
          send(fd_.get(), output_.data() + written_, output_.size() - written_, MSG_NOSIGNAL);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0 && errno == EAGAIN) return true;
      if (put < 0) return close();
      written_ += static_cast<std::size_t>(put);
    }
    return true;
  }

  // Returns true once everything is written.
  bool write_answer() {
    if (!send_output()) return false;
    if (written_ < output_.size()) {
      watch_.want(io::kWritable);
      return false;
    }
    // The end of the answer: the peer now closes its side.
    shutdown(fd_.get(), SHUT_WR);
    watch_.want(io::kReadable);
    phase_ = Phase::drain;
    return true;
  }

  // Reads and drops bytes. Returns false if the connection is closed.
  bool discard() {
    char chunk[4096];
    for (int rounds = 0; rounds < 16; ++rounds) {  // a flood must not hold the loop
      const ssize_t got = recv(fd_.get(), chunk, sizeof chunk, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return true;
      if (got <= 0) return close();
    }
    return true;
  }

  // Destroys *this. Returns false, for callers to pass on.
  bool close() {
    auto& among = phase_ == Phase::view ? server_.viewers_ : server_.connections_;
    among.erase(id_);
    return false;
  }

  Server& server_;
  std::uint64_t id_;
  io::Fd fd_;
  io::Watch watch_;
  io::Timer timer_;
  RequestParser parser_;
  Phase phase_ = Phase::read;
  std::string output_;
  std::size_t written_ = 0;
};

Result<std::unique_ptr<Server>> Server::listen(io::Loop& loop, const std::string& host,
                                               std::uint16_t port, Handlers handlers,
                                               ServerLimits limits) {
  LOCKSTEP_TRY_ASSIGN(io::Listener listener, io::open_listener(host, port, 64));
  const auto bound = static_cast<std::uint16_t>(listener.port);
  return std::unique_ptr<Server>(
      new Server(loop, std::move(listener.fd), bound, std::move(handlers), limits));
}

std::unique_ptr<Server> Server::serve(io::Loop& loop, io::Fd listener, Handlers handlers,
                                      ServerLimits limits) {
  return std::unique_ptr<Server>(
      new Server(loop, std::move(listener), 0, std::move(handlers), limits));
}

Server::Server(io::Loop& loop, io::Fd listener, std::uint16_t port, Handlers handlers,
               ServerLimits limits)
    : loop_(loop),
      handlers_(std::move(handlers)),
      limits_(limits),
      port_(port),
      listener_(std::move(listener)),
      watch_(loop, listener_.get()),
      retry_(loop) {
  watch_.start(io::kReadable, [this](int) { accept_all(); });
}

Server::~Server() = default;

void Server::accept_all() {
  while (true) {
    io::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) pause_accepting();
      return;
    }
    if (limits_.own_user_only && !io::is_own_peer(fd.get())) continue;
    // Closing the oldest keeps the port usable if clients leave connections open.
    if (connections_.size() >= limits_.connections) connections_.erase(connections_.begin());
    const std::uint64_t id = next_id_++;
    connections_.emplace(id, std::make_unique<Connection>(*this, id, std::move(fd)));
  }
}

void Server::send_to_viewers(std::string_view bytes) {
  for (auto next = viewers_.begin(); next != viewers_.end();) {
    Connection& viewer = *next->second;
    ++next;  // push() may remove the viewer
    viewer.push(bytes);
  }
}

// Out of descriptors. The listener stays readable, so continuing to watch it would spin.
void Server::pause_accepting() {
  watch_.want(0);
  retry_.start(std::chrono::seconds(1), [this] { watch_.want(io::kReadable); });
}

Response Server::answer(const Request& request) const {
  if (request.method != "GET" && request.method != "HEAD")
    return {405, "text/plain; charset=utf-8", "only GET and HEAD\n"};
  const auto handler = handlers_.find(request.path);
  if (handler == handlers_.end()) return {404, "text/plain; charset=utf-8", "not found\n"};
  return handler->second(request);
}

}  // namespace lockstep::http
