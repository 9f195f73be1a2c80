// Calls to etcd, whichever of its members answers: the next endpoint is asked when one does not,
// with pauses after each round, until the call's time is over.
//
// No callback runs inside the call that asks; any callback may destroy the transport or ask again;
// a destroyed one never calls back.
#pragma once

#include "base/error.h"
#include "http/client.h"
#include "io/loop.h"
#include "rendezvous/etcd/etcd_access.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace lockstep::rendezvous::etcd {

class EtcdTransport {
 public:
  using Ms = std::chrono::milliseconds;
  using Done = std::function<void(Result<http::Answer>)>;

  struct Request {
    http::Call call;          // the transport sets its timeout and repeatable
    bool repeatable = false;  // doing it twice does no harm
    Ms timeout{0};            // all attempts together; 0: as EtcdAccess has it
    Ms attempt{0};            // one attempt; 0: likewise
  };

  static Result<std::unique_ptr<EtcdTransport>> make(io::Loop& loop, const EtcdAccess& access);
  ~EtcdTransport();
  EtcdTransport(const EtcdTransport&) = delete;
  EtcdTransport& operator=(const EtcdTransport&) = delete;

  // `done` gets an answer of any status but those that mean "not now" (no leader, an overload). A
  // call that may have taken effect is made again only if it is repeatable. The id is for forget().
  std::uint64_t ask(Request request, Done done);
  void forget(std::uint64_t id);

  // Streams choose their endpoint themselves: this is the current one, leave() goes on to the next.
  http::Client& endpoint() { return *clients_[current_]; }
  void leave(const http::Client& endpoint);
  // The endpoint has changed: streams at the old one may hang.
  void on_move(std::function<void()> fn) { on_move_ = std::move(fn); }
  io::Loop& loop() { return loop_; }
  std::string endpoints() const;  // for people
  // Why the last attempt at any endpoint failed; empty: it did not, or none was made.
  const std::string& trouble() const { return trouble_; }

 private:
  struct Operation;

  EtcdTransport(io::Loop& loop, const EtcdAccess& access,
                const std::shared_ptr<const http::TlsContext>& tls);
  void attempt(std::uint64_t id);
  void answered(std::uint64_t id, Result<http::Answer> answer);
  void failed(std::uint64_t id, Error error, bool may_repeat);
  void finish(std::uint64_t id, Result<http::Answer> result);

  io::Loop& loop_;
  Ms timeout_;
  Ms attempt_timeout_;
  std::vector<std::unique_ptr<http::Client>> clients_;
  std::size_t current_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Operation>> operations_;
  std::uint64_t next_id_ = 1;
  std::string trouble_;
  std::function<void()> on_move_;
};

// The calls of one owner: destroying this ends them, and no callback comes.
class EtcdCalls {
 public:
  // The transport must outlive it.
  explicit EtcdCalls(EtcdTransport& etcd) : etcd_(etcd) {}
  ~EtcdCalls();
  EtcdCalls(const EtcdCalls&) = delete;
  EtcdCalls& operator=(const EtcdCalls&) = delete;

  std::uint64_t ask(EtcdTransport::Request request, EtcdTransport::Done done);
  void forget(std::uint64_t id);

 private:
  EtcdTransport& etcd_;
  std::set<std::uint64_t> under_way_;
};

}  // namespace lockstep::rendezvous::etcd
