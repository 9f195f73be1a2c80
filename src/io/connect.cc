#include "io/connect.h"

#include "io/tcp_probe.h"

#include <fmt/core.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

namespace lockstep::io {
namespace {

void prepare(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  probe_server(fd);
}

}  // namespace

std::string place_text(const std::string& host, int port) {
  const bool bracketed = host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(bracketed ? "[{}]:{}" : "{}:{}"), host, port);
}

std::string unanswered_text(const Address& to, int port) {
  return fmt::format("no answer from {} (SYN unanswered, e.g. a firewall)",
                     place_text(address_text(to), port));
}

Dial::Dial(Loop& loop, std::string host, int port, Duration timeout, Done done)
    : loop_(loop),
      host_(std::move(host)),
      port_(port),
      until_(Clock::now() + timeout),
      done_(std::move(done)),
      timer_(loop) {
  timer_.start({}, [this] { begin(); });
}

Dial::~Dial() = default;

void Dial::begin() {
  if (auto known = resolve_numeric(host_, port_)) {
    addresses_ = std::move(known->addresses);
    return try_next();
  }
  timer_.start(until_ - Clock::now(), [this] {
    finish(
        fail(Errc::timeout, fmt::format("the look-up of the host name '{}' does not end", host_)));
  });
  lookup_ = std::make_unique<Lookup>(loop_, host_, port_, [this](Result<Resolved> found) {
    if (!found) return finish(tl::make_unexpected(std::move(found).error()));
    addresses_ = std::move(found->addresses);
    try_next();
  });
}

void Dial::try_next() {
  watch_.reset();
  fd_.reset();
  if (next_ >= addresses_.size()) return finish(tl::make_unexpected(std::move(*error_)));
  const auto left = static_cast<Duration::rep>(addresses_.size() - next_);
  const Address& to = addresses_[next_++];
  fd_ = Fd(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_) return failed(fail_sys("connect to " + place_text(host_, port_), errno).value());
  prepare(fd_.get());
  if (connect(fd_.get(), to.get(), to.size) != 0 && errno != EINPROGRESS)
    return failed(fail_sys("connect to " + place_text(host_, port_), errno).value());
  watch_ = std::make_unique<Watch>(loop_, fd_.get());
  watch_->start(kWritable, [this](int) { on_event(); });
  // An address that does not answer must leave time for those after it.
  timer_.start((until_ - Clock::now()) / left, [this] {
    Error error = fail_sys("connect to " + place_text(host_, port_), ETIMEDOUT).value();
    error.message += ": " + unanswered_text(addresses_[next_ - 1], port_);
    failed(std::move(error));
  });
}

void Dial::on_event() {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return failed(fail_sys("connect to " + place_text(host_, port_), error).value());
  watch_.reset();
  finish(std::move(fd_));
}

void Dial::failed(Error error) {
  const std::string tried = address_text(addresses_[next_ - 1]);
  if (tried != host_) error.message += fmt::format(" (tried {})", tried);
  if (!error_) {
    error_ = std::move(error);
  } else {
    error_->message += "; " + error.message;
  }
  try_next();
}

void Dial::finish(Result<Fd> result) {
  timer_.cancel();
  lookup_.reset();
  const auto done = std::exchange(done_, nullptr);
  done(std::move(result));
}

}  // namespace lockstep::io
