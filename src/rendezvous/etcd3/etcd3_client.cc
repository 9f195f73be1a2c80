// The retry rule for tokens, and the calls of the v3 API.
#include "rendezvous/etcd3/etcd3_client.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::rendezvous::etcd3 {
namespace {

// etcd 3.4 and later; older gateways have the API under /v3beta.
constexpr std::string_view kApi = "/v3";

// gRPC status codes by number; the gateway passes them on.
Errc code_of_grpc(int code) {
  switch (code) {
    // NOT_FOUND
    case 5:
      return Errc::not_found;
    // PERMISSION_DENIED; 16 is UNAUTHENTICATED.
    case 7:
    case kGrpcUnauthenticated:
      return Errc::denied;
    // INVALID_ARGUMENT, FAILED_PRECONDITION, OUT_OF_RANGE
    case 3:
    case 9:
    case 11:
      return Errc::invalid_input;
    // RESOURCE_EXHAUSTED
    case 8:
      return Errc::exhausted;
    default:
      return Errc::unavailable;
  }
}

// Returns whether a new token may help: etcd has forgotten the token (expired, or etcd was
// restarted), or rights have changed since the token was issued.
bool wants_new_token(const Etcd3Refusal& refusal) {
  return refusal.code == kGrpcUnauthenticated ||
         refusal.message.find("revision of auth store is old") != std::string::npos ||
         refusal.message.find("revision in header is old") != std::string::npos;
}

}  // namespace

struct Etcd3Client::CallState {
  std::string path;
  std::string body;
  bool repeatable = false;
  Patience patience;
  Done done;
  bool renewed = false;
  std::string token;  // the token of the last attempt
};

Result<std::unique_ptr<Etcd3Client>> Etcd3Client::make(io::Loop& loop,
                                                       const etcd::EtcdAccess& access) {
  LOCKSTEP_TRY_ASSIGN(auto transport, etcd::EtcdTransport::make(loop, access));
  return std::unique_ptr<Etcd3Client>(new Etcd3Client(std::move(transport), access));
}

Etcd3Client::Etcd3Client(std::unique_ptr<etcd::EtcdTransport> transport,
                         const etcd::EtcdAccess& access)
    : user_(access.user), password_(access.password), transport_(std::move(transport)) {
  transport_->on_move([this] {
    // A copy, because moved() may change the set.
    const auto watches = watches_;
    for (Etcd3Watch* watch : watches)
      watch->moved();
  });
}

Etcd3Client::~Etcd3Client() = default;

http::Call Etcd3Client::make_call(std::string_view path, std::string body) const {
  http::Call call;
  call.method = "POST";
  call.target = fmt::format("{}{}", kApi, path);
  call.fields = {{"Content-Type", "application/json"}};
  if (!token_.empty()) call.fields.push_back({"Authorization", token_});
  call.body = std::move(body);
  call.body_limit = kEtcd3AnswerLimit;
  return call;
}

void Etcd3Client::call(std::string_view path, std::string body, bool repeatable, Patience patience,
                       Done done) {
  auto state = std::make_shared<CallState>();
  state->path = path;
  state->body = std::move(body);
  state->repeatable = repeatable;
  state->patience = patience;
  state->done = std::move(done);
  send(state);
}

void Etcd3Client::send(const std::shared_ptr<CallState>& state) {
  with_token([this, state](const Status& ready) {
    if (!ready) {
      if (state->done) state->done(tl::make_unexpected(ready.error()));
      return;
    }
    state->token = token_;
    etcd::EtcdTransport::Request request;
    request.call = make_call(state->path, state->body);
    request.repeatable = state->repeatable;
    request.timeout = state->patience.timeout;
    request.attempt = state->patience.attempt;
    transport_->ask(std::move(request), [this, state](Result<http::Answer> answer) {
      answered(state, std::move(answer));
    });
  });
}

void Etcd3Client::answered(const std::shared_ptr<CallState>& state, Result<http::Answer> answer) {
  const auto finish = [&state](Result<Etcd3Reply> reply) {
    if (state->done) state->done(std::move(reply));
  };
  if (!answer) return finish(tl::make_unexpected(std::move(answer).error()));
  const std::string what =
      fmt::format("etcd at {}: {}{}", transport_->endpoint().origin().text(), kApi, state->path);
  const Etcd3Refusal refusal = parse_etcd3_refusal(answer->body);
  if (answer->head.status != 200 || refusal.code != 0) {
    // Renew the token once per call. A second refusal is final.
    if (!user_.empty() && !state->renewed && wants_new_token(refusal)) {
      state->renewed = true;
      token_refused(state->token);
      return send(state);
    }
    return finish(fail(code_of_grpc(refusal.code),
                       fmt::format("{}: HTTP {}: {}", what, answer->head.status, refusal.message)));
  }
  auto reply = parse_etcd3_reply(answer->body);
  if (!reply) return finish(tl::make_unexpected(std::move(reply).error().within(what)));
  finish(std::move(reply));
}

void Etcd3Client::token_refused(const std::string& token) {
  // Another call may have fetched a newer token already.
  if (token_ == token) token_.clear();
}

void Etcd3Client::with_token(std::function<void(Status)> then) {
  if (user_.empty() || !token_.empty()) return then({});
  want_token_.push_back(std::move(then));
  // A single request for a token serves all waiting calls.
  if (std::exchange(asking_token_, true)) return;
  etcd::EtcdTransport::Request request;
  request.call = make_call("/auth/authenticate", etcd3_authenticate(user_, password_));
  request.repeatable = true;
  transport_->ask(std::move(request), [this](Result<http::Answer> answer) {
    asking_token_ = false;
    Status outcome;
    auto reply = answer ? parse_etcd3_reply(answer->body)
                        : Result<Etcd3Reply>(tl::make_unexpected(answer.error()));
    if (!reply) {
      outcome = tl::make_unexpected(std::move(reply).error());
    } else if (reply->token.empty()) {
      outcome = fail(Errc::denied,
                     fmt::format("etcd at {} refuses the user '{}': HTTP {}: {}",
                                 transport_->endpoint().origin().text(), user_, answer->head.status,
                                 parse_etcd3_refusal(answer->body).message));
    } else {
      token_ = reply->token;
    }
    const auto waiting = std::exchange(want_token_, {});
    const auto here = calls_.witness();
    for (const auto& call : waiting) {
      call(outcome);
      if (here.gone()) return;
    }
  });
}

void Etcd3Client::range(std::string_view key, std::string_view range_end, Done done) {
  call("/kv/range", etcd3_range(key, range_end), true, {}, std::move(done));
}

void Etcd3Client::put(std::string_view key, std::string_view value, std::int64_t lease, Done done) {
  // Repeatable: the same value twice does no harm.
  call("/kv/put", etcd3_put(key, value, lease), true, {}, std::move(done));
}

void Etcd3Client::remove(std::string_view key, std::string_view range_end, Done done) {
  call("/kv/deleterange", etcd3_delete(key, range_end), true, {}, std::move(done));
}

void Etcd3Client::txn(const Etcd3Txn& txn, bool repeatable, Done done) {
  call("/kv/txn", etcd3_txn(txn), repeatable, {}, std::move(done));
}

void Etcd3Client::grant(std::int64_t ttl_seconds, Done done, Patience patience) {
  // Repeatable: a lease granted twice costs etcd one lease more, which expires.
  call("/lease/grant", etcd3_grant(ttl_seconds), true, patience, std::move(done));
}

void Etcd3Client::keep_alive(std::int64_t lease, Done done, Patience patience) {
  call("/lease/keepalive", etcd3_lease(lease), true, patience, std::move(done));
}

void Etcd3Client::revoke(std::int64_t lease, Done done, Patience patience) {
  call("/lease/revoke", etcd3_lease(lease), true, patience, std::move(done));
}

void Etcd3Client::compact(std::int64_t revision, Done done) {
  call("/kv/compaction", etcd3_compact(revision), true, {}, std::move(done));
}

}  // namespace lockstep::rendezvous::etcd3
