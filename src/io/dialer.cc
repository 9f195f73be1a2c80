// Carries out the steps of a DialCourse with look-ups, sockets and timers.
#include "io/dialer.h"

#include "io/place_text.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/socket.h>

#include <utility>

namespace lockstep::io {
namespace {

// Returns the result of a non-blocking connect(). SO_ERROR is cleared by reading, so call this once
// for each attempt.
int socket_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

Dialer::Dialer(Loop& loop, Target target, const DialRules& rules, Events events)
    : loop_(loop),
      target_(std::move(target)),
      events_(std::move(events)),
      course_(rules, target_.host, Clock::now()),
      timer_(loop) {
  // Start in a later turn of the loop: the caller has not stored this object yet, and an event
  // could ask for it.
  timer_.start({}, [this] { begin_round(); });
}

Dialer::~Dialer() = default;

std::string Dialer::address() const {
  return address_text(addresses_[course_.address()]);
}

std::string Dialer::unanswered() const {
  return fmt::format("no answer from {} (SYN unanswered, e.g. a firewall)",
                     place_text(address(), target_.port));
}

void Dialer::go_on(Error error, bool answered) {
  follow(course_.failed(std::move(error), answered, Clock::now()));
}

void Dialer::once_more(std::function<void(Fd)> connected) {
  open(std::move(connected));
}

void Dialer::hurry() {
  if (stage_ == Stage::pausing) timer_.start({}, [this] { begin_round(); });
}

// --- one step after the other ---

void Dialer::begin_round() {
  allowed_ = course_.begin_round(Clock::now());
  // Digits and "localhost" need no thread.
  if (auto known = resolve_numeric(target_.host, target_.port)) return found(std::move(*known));
  look_up();
}

void Dialer::look_up() {
  stage_ = Stage::looking_up;
  step_since_ = Clock::now();
  timer_.start(allowed_, [this] { follow(course_.look_up_expired(Clock::now())); });
  // The look-up runs on a thread, which cannot be stopped. Without the Lookup the answer is
  // ignored.
  lookup_ = std::make_unique<Lookup>(
      loop_, target_.host, target_.port, [this](Result<Resolved> resolved) {
        if (resolved) return found(std::move(*resolved));
        follow(course_.not_found(std::move(resolved).error(), Clock::now()));
      });
}

void Dialer::found(Resolved resolved) {
  addresses_ = std::move(resolved.addresses);
  std::vector<std::string> texts;
  texts.reserve(addresses_.size());
  for (const Address& address : addresses_)
    texts.push_back(address_text(address));
  follow(course_.found(std::move(texts), Clock::now()));
}

void Dialer::follow(DialCourse::Step step) {
  // May destroy the watch or timer whose callback is running. The loop keeps the running function
  // alive.
  drop();
  switch (step.what) {
    case DialCourse::Step::What::connect:
      allowed_ = step.time;
      return open(events_.connected);
    case DialCourse::Step::What::pause: {
      stage_ = Stage::pausing;
      // Start the timer first: the callback may destroy this dialer.
      timer_.start(step.time, [this] { begin_round(); });
      const Error error = *course_.error();
      if (const auto call = events_.round_failed) call(error);
      return;
    }
    case DialCourse::Step::What::give_up: {
      const auto call = events_.gave_up;
      return call(*course_.error());
    }
  }
}

void Dialer::open(std::function<void(Fd)> connected) {
  stage_ = Stage::connecting;
  step_since_ = Clock::now();
  const Address& to = addresses_[course_.address()];
  fd_ = Fd(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_) return failed(fail_sys(target_.what, errno).value());
  if (::connect(fd_.get(), to.get(), to.size) != 0 && errno != EINPROGRESS)
    return failed(fail_sys(target_.what, errno).value());
  watch_ = std::make_unique<Watch>(loop_, fd_.get());
  watch_->start(kWritable, [this, connected = std::move(connected)](int) {
    on_writable(std::function(connected));  // a copy, because the watch is destroyed meanwhile
  });
  timer_.start(allowed_, [this] {
    // On a busy machine the timer may run before an answer that has already arrived.
    if (const int refusal = socket_error(fd_.get()); refusal != 0)
      return failed(fail_sys(target_.what, refusal).value());
    Error error = fail_sys(target_.what, ETIMEDOUT).value();
    error.message += ": " + unanswered();
    failed(std::move(error));
  });
}

void Dialer::on_writable(const std::function<void(Fd)>& connected) {
  const int error = socket_error(fd_.get());
  if (error != 0) return failed(fail_sys(target_.what, error).value());
  watch_.reset();
  timer_.cancel();
  stage_ = Stage::connected;
  connected(std::move(fd_));
}

void Dialer::failed(Error error) {
  follow(course_.failed(std::move(error), false, Clock::now()));
}

void Dialer::drop() {
  timer_.cancel();
  lookup_.reset();
  watch_.reset();
  fd_.reset();
}

}  // namespace lockstep::io
