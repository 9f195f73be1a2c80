// The retry rule: when a call may be repeated, and where.
#include "rendezvous/etcd/etcd_transport.h"

#include "base/backoff.h"
#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep::rendezvous::etcd {
namespace {

using std::chrono::milliseconds;
constexpr Backoff::Rules kPauses{
    .first = milliseconds(20), .longest = milliseconds(500), .percent = 150};
constexpr milliseconds kTooLate(10);  // too little time for another attempt

// Returns whether the answer means "not now": Raft has no leader, or the member is overloaded or
// stopping. Another member, or the same one later, may do better.
bool not_now(const http::Answer& answer) {
  switch (answer.head.status) {
    case 500:  // v2 API; errors 300 and 301 are Raft's
      return answer.body.find("\"errorCode\":30") != std::string::npos ||
             answer.body.find("etcdserver: ") != std::string::npos;
    case 502:
    case 503:
    case 504:
      return true;
    default:
      return false;
  }
}

// Removes the request from an error. Messages for waiting users name the place anyway.
std::string without_request(const std::string& message, const http::Call& call,
                            const http::Client& asked) {
  const std::string request =
      fmt::format("{} {}{}: ", call.method, asked.origin().text(), call.target);
  return message.starts_with(request) ? message.substr(request.size()) : message;
}

}  // namespace

struct EtcdTransport::Operation {
  Operation(io::Loop& loop, Request what, Done then)
      : request(std::move(what)), done(std::move(then)), timer(loop) {}

  Request request;
  Done done;
  io::Timer timer;  // the pause before the next pass
  io::TimePoint since = io::Clock::now();
  io::TimePoint until{};
  std::unique_ptr<http::Exchange> exchange;
  http::Client* asked = nullptr;
  std::size_t failures = 0;
  Backoff pauses{kPauses};
  bool cut_short = false;  // this attempt had less time than usual, so its timeout says little
  std::vector<std::pair<http::Client*, Error>> errors;  // the last error of each endpoint

  void note(Error error) {
    const auto before = std::find_if(errors.begin(), errors.end(),
                                     [this](const auto& e) { return e.first == asked; });
    if (before != errors.end()) {
      // Keep the more telling error of the earlier, longer attempt.
      if (cut_short && error.code == Errc::timeout) error = std::move(before->second);
      errors.erase(before);
    }
    errors.emplace_back(asked, std::move(error));
  }
};

Result<std::unique_ptr<EtcdTransport>> EtcdTransport::make(io::Loop& loop,
                                                           const EtcdAccess& access) {
  LOCKSTEP_CHECK(!access.endpoints.empty());
  std::shared_ptr<const http::TlsContext> tls;
  if (access.https) {
    LOCKSTEP_TRY_ASSIGN(tls, http::TlsContext::make(access.tls));
  }
  return std::unique_ptr<EtcdTransport>(new EtcdTransport(loop, access, tls));
}

EtcdTransport::EtcdTransport(io::Loop& loop, const EtcdAccess& access,
                             const std::shared_ptr<const http::TlsContext>& tls)
    : loop_(loop), timeout_(access.timeout), attempt_timeout_(access.attempt_timeout) {
  clients_.reserve(access.endpoints.size());
  for (const auto& place : access.endpoints)
    clients_.push_back(
        std::make_unique<http::Client>(loop, http::Origin{place.host, place.port, tls}));
}

EtcdTransport::~EtcdTransport() = default;

void EtcdTransport::forget(std::uint64_t id) {
  operations_.erase(id);
}

std::string EtcdTransport::endpoints() const {
  std::vector<std::string> texts;
  texts.reserve(clients_.size());
  for (const auto& client : clients_)
    texts.push_back(client->origin().text());
  return join(texts, ",");
}

std::uint64_t EtcdTransport::ask(Request request, Done done) {
  if (request.timeout == Ms(0)) request.timeout = timeout_;
  if (request.attempt == Ms(0)) request.attempt = attempt_timeout_;
  const std::uint64_t id = next_id_++;
  auto operation = std::make_unique<Operation>(loop_, std::move(request), std::move(done));
  operation->until = operation->since + operation->request.timeout;
  operations_.emplace(id, std::move(operation));
  attempt(id);
  return id;
}

void EtcdTransport::leave(const http::Client& endpoint) {
  // Another call may have moved on already, or there is nowhere to go.
  if (clients_[current_].get() != &endpoint || clients_.size() == 1) return;
  current_ = (current_ + 1) % clients_.size();
  // Streams follow to the new endpoint: the old member may be cut off from the cluster.
  if (on_move_) on_move_();
}

void EtcdTransport::attempt(std::uint64_t id) {
  Operation& operation = *operations_.at(id);
  const auto left = std::chrono::ceil<Ms>(operation.until - io::Clock::now());
  http::Call call = operation.request.call;
  call.repeatable = operation.request.repeatable;
  // See Operation::note().
  operation.cut_short = left < operation.request.attempt;
  call.timeout = std::max(std::min(left, operation.request.attempt), Ms(1));
  operation.asked = clients_[current_].get();
  operation.exchange = operation.asked->ask(
      std::move(call),
      [this, id](Result<http::Answer> answer) { answered(id, std::move(answer)); });
}

void EtcdTransport::answered(std::uint64_t id, Result<http::Answer> answer) {
  const Operation& operation = *operations_.at(id);
  if (!answer) {
    // An unsent request cannot have taken effect, so a repetition is always safe.
    const bool unsent = !operation.exchange->sent();
    return failed(id, std::move(answer).error(), unsent || operation.request.repeatable);
  }
  if (!not_now(*answer)) {
    // Any answer proves that etcd can be reached.
    trouble_.clear();
    return finish(id, std::move(answer));
  }
  const http::Call& call = operation.request.call;
  failed(id,
         Error{Errc::unavailable,
               fmt::format("{} {}{}: HTTP {}: {}", call.method, operation.asked->origin().text(),
                           call.target, answer->head.status, printable(strip(answer->body))),
               {},
               0},
         operation.request.repeatable);
}

// Handles a failed attempt: tries the next endpoint if a repetition is safe and time is left.
void EtcdTransport::failed(std::uint64_t id, Error error, bool may_repeat) {
  Operation& operation = *operations_.at(id);
  ++operation.failures;
  // A long poll that timed out only means that nothing has changed.
  if (may_repeat || error.code != Errc::timeout)
    trouble_ = without_request(error.message, operation.request.call, *operation.asked);
  operation.note(std::move(error));
  leave(*operation.asked);
  const auto left = std::chrono::floor<Ms>(operation.until - io::Clock::now());
  const bool round_over = operation.failures % clients_.size() == 0;
  // Pauses shrink towards the end, so that the last attempt uses the remaining time.
  const Ms pause = round_over ? std::min(operation.pauses.next(), left / 2) : Ms(0);
  if (may_repeat && left > kTooLate) {
    operation.timer.start(pause, [this, id] { attempt(id); });
    return;
  }
  // Report every endpoint's last error, the most recent first.
  Error all = operation.errors.back().second;
  for (std::size_t i = operation.errors.size() - 1; i-- > 0;)
    all.message += "; " + operation.errors[i].second.message;
  // One attempt needs no remark on the time spent.
  if (operation.failures > 1) {
    const std::chrono::duration<double> took = io::Clock::now() - operation.since;
    all.message += fmt::format(", gave up after {:.1f} s", took.count());
  }
  finish(id, tl::make_unexpected(std::move(all)));
}

void EtcdTransport::finish(std::uint64_t id, Result<http::Answer> result) {
  // Extract first: `done` may destroy the transport.
  const auto node = operations_.extract(id);
  node.mapped()->done(std::move(result));
}

EtcdCalls::~EtcdCalls() {
  // Late answers must not reach an owner that is gone.
  for (const std::uint64_t id : under_way_)
    etcd_.forget(id);
}

std::uint64_t EtcdCalls::ask(EtcdTransport::Request request, EtcdTransport::Done done) {
  const auto own =
      std::make_shared<std::uint64_t>(0);  // known only when the transport has the call
  *own = etcd_.ask(std::move(request),
                   [this, own, done = std::move(done)](Result<http::Answer> answer) {
                     under_way_.erase(*own);
                     done(std::move(answer));
                   });
  under_way_.insert(*own);
  return *own;
}

void EtcdCalls::forget(std::uint64_t id) {
  under_way_.erase(id);
  etcd_.forget(id);
}

}  // namespace lockstep::rendezvous::etcd
