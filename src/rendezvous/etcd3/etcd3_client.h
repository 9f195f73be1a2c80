// etcd's v3 API over its JSON gateway (etcd 3.4 and later): several endpoints, TLS, user and
// password. Errors name endpoint, and errno, HTTP status or etcd's own words.
//
// No callback runs inside the call that asks; any callback may destroy the client or ask again; a
// destroyed client never calls back. Watches must go before their client.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/loop.h"
#include "rendezvous/etcd/etcd_access.h"
#include "rendezvous/etcd/etcd_transport.h"
#include "rendezvous/etcd3/etcd3_codec.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace lockstep::rendezvous::etcd3 {

class Etcd3Watch;

// Times that replace those of EtcdAccess; 0: as it has them.
struct Etcd3Patience {
  std::chrono::milliseconds timeout{0};  // all attempts
  std::chrono::milliseconds attempt{0};  // one endpoint's answer
};

class Etcd3Client {
 public:
  using Ms = std::chrono::milliseconds;
  using Done = std::function<void(Result<Etcd3Reply>)>;
  using Patience = Etcd3Patience;

  static Result<std::unique_ptr<Etcd3Client>> make(io::Loop& loop, const etcd::EtcdAccess& access);
  std::string endpoints() const { return transport_->endpoints(); }  // for people
  ~Etcd3Client();
  Etcd3Client(const Etcd3Client&) = delete;
  Etcd3Client& operator=(const Etcd3Client&) = delete;

  // range_end "": that key alone; etcd3_prefix_end(): all that begin so.
  void range(std::string_view key, std::string_view range_end, Done done);
  void put(std::string_view key, std::string_view value, std::int64_t lease, Done done);
  void remove(std::string_view key, std::string_view range_end, Done done);
  // repeatable: after an attempt whose outcome nobody knows it is tried again, so that it may be
  // done twice. The second time its compares see what the first has done.
  void txn(const Etcd3Txn& txn, bool repeatable, Done done);
  void grant(std::int64_t ttl_seconds, Done done, Patience patience = {});
  void keep_alive(std::int64_t lease, Done done, Patience patience = {});
  void revoke(std::int64_t lease, Done done, Patience patience = {});
  void compact(std::int64_t revision, Done done);

  etcd::EtcdTransport& transport() { return *transport_; }

 private:
  friend class Etcd3Watch;
  struct CallState;

  Etcd3Client(std::unique_ptr<etcd::EtcdTransport> transport, const etcd::EtcdAccess& access);
  void call(std::string_view path, std::string body, bool repeatable, Patience patience, Done done);
  void send(const std::shared_ptr<CallState>& state);
  void answered(const std::shared_ptr<CallState>& state, Result<http::Answer> answer);
  // `then` runs, now or later, when there is a token or nobody needs one.
  void with_token(std::function<void(Status)> then);
  void token_refused(const std::string& token);
  http::Call make_call(std::string_view path, std::string body) const;

  std::string user_;
  std::string password_;
  std::string token_;
  bool asking_token_ = false;
  std::deque<std::function<void(Status)>> want_token_;
  std::set<Etcd3Watch*> watches_;
  CallbackScope calls_;
  std::unique_ptr<etcd::EtcdTransport> transport_;  // goes first: its callbacks use the rest
};

// What happens to a key or a range, from a revision on. Whenever the stream breaks, the watch goes
// on at the next endpoint, from the last revision seen.
class Etcd3Watch {
 public:
  struct Handlers {
    std::function<void(const std::vector<Etcd3Event>&)> events;
    // Events between the last ones told and this revision are lost (compacted): look at the keys
    // themselves. The watch goes on from there.
    std::function<void(std::int64_t revision)> gap;
    // What went wrong, for messages; the watch keeps trying.
    std::function<void(const Error&)> trouble;
  };

  Etcd3Watch(Etcd3Client& client, std::string key, std::string range_end,
             std::int64_t from_revision, Handlers handlers);
  ~Etcd3Watch();
  Etcd3Watch(const Etcd3Watch&) = delete;
  Etcd3Watch& operator=(const Etcd3Watch&) = delete;

 private:
  friend class Etcd3Client;
  void open();
  void moved();  // another endpoint is the right one now
  void on_bytes(std::string_view bytes);
  bool take(std::string_view line);  // false: this stream is done with, or the watch gone
  void again(const Error& error);

  Etcd3Client& client_;
  std::string key_;
  std::string range_end_;
  std::int64_t next_;
  Handlers handlers_;
  std::unique_ptr<http::Exchange> stream_;
  http::Client* endpoint_ = nullptr;
  int status_ = 0;
  std::string token_;
  std::string line_;  // begun and not ended
  io::Timer retry_;
  std::chrono::milliseconds pause_{0};
  CallbackScope calls_;
};

}  // namespace lockstep::rendezvous::etcd3
