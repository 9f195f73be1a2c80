// A client of etcd's v3 API over its JSON gateway (etcd 3.4 and later): several endpoints, TLS,
// user and password. Errors name the endpoint and the errno, the HTTP status or etcd's own words.
//
// No callback runs inside the call that takes it. Any callback may destroy the client or make
// another call. A destroyed client never calls back. Destroy watches before their client.
#pragma once

#include "base/backoff.h"
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

// Timeouts in place of those of EtcdAccess; 0: no change.
struct Etcd3Patience {
  std::chrono::milliseconds timeout{0};  // for all attempts
  std::chrono::milliseconds attempt{0};  // for one endpoint's answer
};

class Etcd3Client {
 public:
  using Ms = std::chrono::milliseconds;
  using Done = std::function<void(Result<Etcd3Reply>)>;
  using Patience = Etcd3Patience;

  static Result<std::unique_ptr<Etcd3Client>> make(io::Loop& loop, const etcd::EtcdAccess& access);
  std::string endpoints() const { return transport_->endpoints(); }  // for messages
  ~Etcd3Client();
  Etcd3Client(const Etcd3Client&) = delete;
  Etcd3Client& operator=(const Etcd3Client&) = delete;

  // range_end "": only that key; etcd3_prefix_end(): all keys with that prefix.
  void range(std::string_view key, std::string_view range_end, Done done);
  void put(std::string_view key, std::string_view value, std::int64_t lease, Done done);
  void remove(std::string_view key, std::string_view range_end, Done done);
  // repeatable: repeat after an attempt with an unknown outcome, so that the transaction may run
  // twice. The second run's compares see the effect of the first.
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
  // Calls `then`, now or later, when there is a token or no user is set.
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
  std::unique_ptr<etcd::EtcdTransport>
      transport_;  // destroyed first: its callbacks use the other members
};

// Watches a key or a range from a revision on. If the stream breaks, the watch continues at the
// next endpoint, after the last revision seen.
class Etcd3Watch {
 public:
  struct Handlers {
    std::function<void(const std::vector<Etcd3Event>&)> events;
    // Events before this revision are lost (compacted): read the keys. The watch continues from
    // there.
    std::function<void(std::int64_t revision)> gap;
    // Gets an error for messages; the watch keeps trying.
    std::function<void(const Error&)> trouble;
  };

  Etcd3Watch(Etcd3Client& client, std::string key, std::string range_end,
             std::int64_t from_revision, Handlers handlers);
  ~Etcd3Watch();
  Etcd3Watch(const Etcd3Watch&) = delete;
  Etcd3Watch& operator=(const Etcd3Watch&) = delete;

 private:
  friend class Etcd3Client;
  static constexpr std::chrono::milliseconds kFirstPause{20};

  void open();
  void moved();  // the transport has moved to another endpoint
  void on_bytes(std::string_view bytes);
  bool take(std::string_view line);  // false: the stream has ended, or the watch is destroyed
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
  std::string line_;  // the last line, while incomplete
  io::Timer retry_;
  Backoff pauses_{
      {.first = kFirstPause, .longest = std::chrono::milliseconds(500), .percent = 150}};
  CallbackScope calls_;
};

}  // namespace lockstep::rendezvous::etcd3
