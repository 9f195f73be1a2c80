// Requests, deadlines and answers of the asynchronous client. async_connect.cc makes the
// connection.
#include "store/async_client.h"

#include "base/text.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>

namespace lockstep::store {
namespace {

using std::chrono::milliseconds;
// Time for a server to answer CANCEL_WAIT. A server without an answer by then counts as dead.
constexpr milliseconds kCancelGrace(5000);
constexpr std::size_t kReadBytes = 64U << 10;

std::vector<std::string_view> views(const AsyncClient::Keys& keys) {
  return {keys.begin(), keys.end()};
}

template <class T>
auto to_status(AsyncClient::Done<void> done) {
  return [done = std::move(done)](Result<T> answer) {
    if (!done) return;
    if (answer) return done({});
    done(tl::make_unexpected(std::move(answer).error()));
  };
}

}  // namespace

// --- asking ---

AsyncClient::Pending AsyncClient::make(const Request& request, Reply reply, Timeout timeout) const {
  const Ms allowed = timeout.value_or(options_.timeout);
  Pending pending;
  // This client always speaks the newer dialect: connect() accepts no other server.
  LOCKSTEP_CHECK(put_request(pending.bytes, Dialect::d, request).has_value());
  pending.reply = reply;
  pending.deadline = io::Clock::now() + allowed;
  pending.parks = request.op == Op::wait;
  // Word the timeout error now, in PyTorch's form: the keys are needed after the request's bytes
  // are gone.
  const Keys keys = request.items.empty() ? Keys{std::string(request.key)}
                                          : Keys(request.items.begin(), request.items.end());
  pending.what =
      fmt::format("{} timeout after {}ms, {}: {}", to_lower(op_name(request.op)), allowed.count(),
                  pending.parks ? "keys" : "key", printable(join(keys, ", ")));
  return pending;
}

void AsyncClient::ask(Pending pending) {
  // Rearm only for an earlier deadline: a scan of all requests for each new one would be quadratic.
  const bool sooner = pending.deadline < armed_;
  queue_.push_back(std::move(pending));
  if (sooner || stage_ == Stage::down) arm_deadline();
  want();
}

void AsyncClient::set(std::string_view key, std::string_view value, Done<void> done,
                      Timeout timeout) {
  auto pending = make({.op = Op::set, .key = key, .value = value}, Reply::none, timeout);
  pending.done = to_status<Answer>(std::move(done));
  ask(std::move(pending));
}

void AsyncClient::multi_set(const Entries& entries, Done<void> done, Timeout timeout) {
  std::vector<std::string_view> items;
  for (const auto& [key, value] : entries) {
    items.push_back(key);
    items.push_back(value);
  }
  auto pending = make({.op = Op::multi_set, .items = items}, Reply::none, timeout);
  pending.done = to_status<Answer>(std::move(done));
  ask(std::move(pending));
}

void AsyncClient::ping(Done<void> done, Timeout timeout) {
  constexpr std::int64_t kNonce = 0x70696e67;
  auto pending = make({.op = Op::ping, .number = kNonce}, Reply::word, timeout);
  pending.done = [done = std::move(done), place = place()](Result<Answer> answer) {
    if (!answer) return done(tl::make_unexpected(std::move(answer).error()));
    // A wrong echo means the stream is out of step. Never use the connection's later answers.
    if (answer->number != kNonce)
      return done(fail(Errc::corrupt, "the store at " + place + " echoes a wrong PING"));
    done({});
  };
  ask(std::move(pending));
}

void AsyncClient::wait(const Keys& keys, Done<void> done, Timeout timeout) {
  const auto items = views(keys);
  auto pending = make({.op = Op::wait, .items = items}, Reply::byte, timeout);
  pending.done = to_status<Answer>(std::move(done));
  ask(std::move(pending));
}

// Runs a follow-up request after a WAIT. Nothing is sent while a WAIT is parked, so the follower at
// the front of the queue is sent next. Both requests share one deadline.
void AsyncClient::wait_then(const Keys& keys, Timeout timeout, const Request& then, Reply reply,
                            std::function<void(Result<Answer>)> done) {
  const auto items = views(keys);
  auto pending = make({.op = Op::wait, .items = items}, Reply::byte, timeout);
  auto follower = make(then, reply, timeout);
  follower.deadline = pending.deadline;
  follower.values = keys.size();
  follower.done = std::move(done);
  const auto next = std::make_shared<Pending>(std::move(follower));
  pending.done = [this, next](Result<Answer> answer) {
    if (!answer) return next->done(std::move(answer));
    queue_.push_front(std::move(*next));
    arm_deadline();
  };
  ask(std::move(pending));
}

void AsyncClient::get(std::string_view key, Done<std::string> done, Timeout timeout) {
  wait_then({std::string(key)}, timeout, {.op = Op::get, .key = key}, Reply::text,
            // WAIT first: servers differ in their answer to a GET of a missing key (see
            // Engine::reply_get()).
            [done = std::move(done)](Result<Answer> answer) {
              if (!answer) return done(tl::make_unexpected(std::move(answer).error()));
              done(std::move(answer->values.front()));
            });
}

void AsyncClient::multi_get(const Keys& keys, Done<Keys> done, Timeout timeout) {
  const auto items = views(keys);
  wait_then(keys, timeout, {.op = Op::multi_get, .items = items}, Reply::texts,
            [done = std::move(done)](Result<Answer> answer) {
              if (!answer) return done(tl::make_unexpected(std::move(answer).error()));
              done(std::move(answer->values));
            });
}

void AsyncClient::compare_set(std::string_view key, std::string_view expected,
                              std::string_view desired, Done<std::string> done, Timeout timeout) {
  auto pending = make({.op = Op::compare_set, .key = key, .value = expected, .desired = desired},
                      Reply::text, timeout);
  pending.done = [done = std::move(done)](Result<Answer> answer) {
    if (!answer) return done(tl::make_unexpected(std::move(answer).error()));
    done(std::move(answer->values.front()));
  };
  ask(std::move(pending));
}

void AsyncClient::add(std::string_view key, std::int64_t delta, Done<std::int64_t> done,
                      Timeout timeout) {
  auto pending = make({.op = Op::add, .key = key, .number = delta}, Reply::number, timeout);
  pending.done = [done = std::move(done)](Result<Answer> answer) {
    if (!answer) return done(tl::make_unexpected(std::move(answer).error()));
    done(answer->number);
  };
  ask(std::move(pending));
}

void AsyncClient::delete_key(std::string_view key, Done<bool> done, Timeout timeout) {
  auto pending = make({.op = Op::delete_key, .key = key}, Reply::number, timeout);
  pending.done = [done = std::move(done)](Result<Answer> answer) {
    if (!answer) return done(tl::make_unexpected(std::move(answer).error()));
    done(answer->number != 0);
  };
  ask(std::move(pending));
}

// --- deadlines and endings ---

void AsyncClient::arm_deadline() {
  if (stage_ == Stage::down) {
    // The connection is lost: fail the queue in the next turn, since no callback may run inside
    // ask().
    if (!queue_.empty()) deadline_timer_.start({}, [this] { expire(); });
    return;
  }
  auto nearest = io::TimePoint::max();
  for (const auto& pending : queue_)
    nearest = std::min(nearest, pending.deadline);
  for (const auto& pending : sent_)
    nearest = std::min(nearest, pending.deadline);
  // A single timer serves all requests, and fires at the earliest deadline.
  armed_ = nearest;
  if (nearest == io::TimePoint::max()) return deadline_timer_.cancel();
  deadline_timer_.start(nearest - io::Clock::now(), [this] { expire(); });
}

bool AsyncClient::finish(const Pending& pending, Result<Answer> answer) const {
  if (!pending.done) return true;
  // The callback may destroy this client.
  const auto here = calls_.witness();
  pending.done(std::move(answer));
  return !here.gone();
}

void AsyncClient::expire() {
  if (stage_ == Stage::down) {
    fail_all(*down_error_);
    return;
  }
  const auto now = io::Clock::now();
  // The server has not even answered CANCEL_WAIT. Without that answer the stream stays out of step,
  // so the connection is useless.
  const bool stuck = std::any_of(sent_.begin(), sent_.end(), [&](const Pending& pending) {
    return pending.canceled && pending.deadline <= now;
  });
  if (stuck) {
    return lose({Errc::unavailable, "the store at " + place() + " does not answer", {}, ETIMEDOUT});
  }
  std::vector<Pending> late;
  const auto first = std::stable_partition(
      queue_.begin(), queue_.end(), [&](const Pending& item) { return item.deadline > now; });
  for (Pending& pending : sent_) {
    if (pending.deadline > now) continue;
    // Keep the entry in sent_ without its callback: the answer may still come, and must be read to
    // stay in step.
    late.emplace_back().done = std::exchange(pending.done, nullptr);
    late.back().what = pending.what;
    pending.deadline = io::TimePoint::max();
    // A WAIT stays parked on the server for ever unless it is canceled, and blocks this connection.
    if (pending.parks) take_back(pending);
  }
  std::move(first, queue_.end(), std::back_inserter(late));
  queue_.erase(first, queue_.end());
  // Rearm and send before the callbacks: a callback may destroy this client.
  arm_deadline();
  want();
  for (const Pending& pending : late) {
    std::string text = pending.what;
    if (stage_ != Stage::ready && stage_ != Stage::down)
      text += fmt::format(" (not connected to {}{})", place(),
                          dialer_ && dialer_->error() ? ": " + dialer_->error()->message : "");
    if (!finish(pending, fail(Errc::timeout, std::move(text)))) return;
  }
}

// Cancels a parked WAIT. The server answers 1. A 0 before the 1 means that the wait had just ended.
void AsyncClient::take_back(Pending& wait) {
  const std::size_t before = out_.size();
  LOCKSTEP_CHECK(put_request(out_, Dialect::d, {.op = Op::cancel_wait}).has_value());
  put_total_ += out_.size() - before;
  wait.canceled = true;
  wait.deadline = io::Clock::now() + kCancelGrace;
}

bool AsyncClient::fail_all(const Error& error) {
  // Move the requests out first: a callback may ask again.
  std::deque<Pending> failed = std::exchange(sent_, {});
  std::move(queue_.begin(), queue_.end(), std::back_inserter(failed));
  queue_.clear();
  armed_ = io::TimePoint::max();
  deadline_timer_.cancel();
  for (const Pending& pending : failed) {
    if (!finish(pending, tl::make_unexpected(error))) return false;
  }
  return true;
}

void AsyncClient::lose(const Error& error) {
  watch_.reset();
  fd_.reset();
  stage_ = Stage::down;
  down_error_ = error;
  // Copy the callback: a request's callback may destroy this client.
  const auto tell = on_loss_;
  if (fail_all(error) && tell) tell(error);
}

// --- the stream ---

// Watches for writability only while there is something to send. Otherwise the loop would spin.
void AsyncClient::want() {
  if (stage_ != Stage::ready) return;
  const bool can_send = !queue_.empty() && (sent_.empty() || !sent_.back().parks);
  const bool unsent = out_sent_ < out_.size();
  watch_->want(io::kReadable | (can_send || unsent ? io::kWritable : 0));
}

void AsyncClient::on_event(int events) {
  if (stage_ == Stage::greeting) return read_echo();
  if ((events & io::kReadable) != 0 && !receive()) return;
  pump();
  // flush() may complete requests without an answer (Reply::none), so look for answers after it.
  if (!flush() || !take_answers()) return;
  want();
}

void AsyncClient::pump() {
  while (!queue_.empty() && (sent_.empty() || !sent_.back().parks)) {
    Pending pending = std::move(queue_.front());
    queue_.pop_front();
    out_ += pending.bytes;
    put_total_ += pending.bytes.size();
    pending.bytes = {};
    pending.end = put_total_;
    // Requests are sent without waiting for earlier answers, which come in order. A parked WAIT is
    // the exception: the server would answer later requests before it.
    sent_.push_back(std::move(pending));
  }
}

// Sends what the kernel takes. Returns false if the connection is lost and all callbacks have run.
bool AsyncClient::flush() {
  while (out_sent_ < out_.size()) {
    const ssize_t put =
        // MSG_NOSIGNAL: a closed peer must be an error here, not a SIGPIPE.
        send(fd_.get(), out_.data() + out_sent_, out_.size() - out_sent_, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return true;
    if (put < 0) {
      lose(fail_sys("send to the store at " + place(), errno).value());
      return false;
    }
    out_sent_ += static_cast<std::size_t>(put);
    taken_total_ += static_cast<std::uint64_t>(put);
  }
  out_.clear();
  out_sent_ = 0;
  return true;
}

bool AsyncClient::receive() {
  const std::size_t before = in_.size();
  in_.resize(before + kReadBytes);
  const ssize_t got = recv(fd_.get(), in_.data() + before, kReadBytes, 0);
  const int error = errno;
  in_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got > 0) return take_answers();
  if (got < 0 && (error == EAGAIN || error == EINTR)) return true;
  if (got == 0) {
    lose({Errc::unavailable, "the store at " + place() + " closed the connection", {}, 0});
  } else {
    lose(fail_sys("receive from the store at " + place(), error).value());
  }
  return false;
}

// Hands out complete answers in order. Returns false if the connection is lost or a callback
// destroyed this client.
bool AsyncClient::take_answers() {
  while (!sent_.empty()) {
    // A request without an answer (SET) is done when the kernel has taken its last byte.
    Parse parsed = Parse::more;
    if (sent_.front().reply != Reply::none) {
      parsed = parse(sent_.front());
    } else if (taken_total_ >= sent_.front().end) {
      parsed = Parse::done;
    }
    if (parsed == Parse::more) break;
    if (parsed == Parse::corrupt) {
      lose({Errc::corrupt, "the store at " + place() + " sends an invalid answer", {}, 0});
      return false;
    }
    Pending pending = std::move(sent_.front());
    sent_.pop_front();
    Answer answer = std::move(pending.answer);
    if (!finish(pending, std::move(answer))) return false;
  }
  if (sent_.empty() && in_taken_ < in_.size()) {
    lose({Errc::corrupt, "the store at " + place() + " sends bytes without a request", {}, 0});
    return false;
  }
  // Drop parsed bytes only once they are half of the buffer: the cost stays linear.
  if (in_taken_ == in_.size() || in_taken_ > in_.size() / 2)
    in_.erase(0, std::exchange(in_taken_, 0));
  if (sent_.empty() && queue_.empty()) arm_deadline();
  return true;
}

// Parses as much of one answer as has arrived and removes these bytes from in_.
AsyncClient::Parse AsyncClient::parse(Pending& pending) {
  const auto left = [&] { return in_.size() - in_taken_; };
  const auto at = [&] { return in_.data() + in_taken_; };
  if (pending.reply == Reply::byte) {
    while (left() > 0) {
      const char byte = in_[in_taken_++];
      // A canceled WAIT ends with 1. A late 0 before it is skipped.
      if (byte == (pending.canceled ? 1 : 0)) return Parse::done;
      if (byte != 0) return Parse::corrupt;
    }
    return Parse::more;
  }
  if (pending.reply == Reply::word || pending.reply == Reply::number) {
    const std::size_t size = pending.reply == Reply::word ? 4 : 8;
    if (left() < size) return Parse::more;
    pending.answer.number =
        size == 4 ? std::int64_t{load_u32(at())} : static_cast<std::int64_t>(load_u64(at()));
    in_taken_ += size;
    return Parse::done;
  }
  const std::size_t expected = pending.reply == Reply::text ? 1 : pending.values;
  static const Limits kLimits;
  while (pending.answer.values.size() < expected) {
    if (left() < 8) return Parse::more;
    const std::uint64_t size = load_u64(at());
    // A length from the peer must not make this process allocate any amount.
    if (size > kLimits.max_message_bytes) return Parse::corrupt;
    if (left() - 8 < size) return Parse::more;
    pending.answer.values.emplace_back(at() + 8, static_cast<std::size_t>(size));
    in_taken_ += 8 + static_cast<std::size_t>(size);
  }
  return Parse::done;
}

}  // namespace lockstep::store
