// Calls to any member of an etcd cluster. If a member does not answer, the transport tries the next
// endpoint, with a pause after each pass over all endpoints, until the call's timeout.
//
// No callback runs inside the call that takes it. Any callback may destroy the transport or make
// another call. A destroyed transport never calls back.
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
    http::Call call;          // the transport sets timeout and repeatable
    bool repeatable = false;  // harmless if done twice
    Ms timeout{0};            // of all attempts; 0: EtcdAccess::timeout
    Ms attempt{0};            // of one attempt; 0: EtcdAccess::attempt_timeout
  };

  static Result<std::unique_ptr<EtcdTransport>> make(io::Loop& loop, const EtcdAccess& access);
  ~EtcdTransport();
  EtcdTransport(const EtcdTransport&) = delete;
  EtcdTransport& operator=(const EtcdTransport&) = delete;

  // Makes a call. `done` gets an answer of any status except those that mean "not now" (no leader,
  // overload). Repeats a call that may have taken effect only if the call is repeatable. Returns an
  // id for forget().
  std::uint64_t ask(Request request, Done done);
  void forget(std::uint64_t id);

  // The current endpoint, for streams, which choose their endpoint themselves. leave() moves on to
  // the next.
  http::Client& endpoint() { return *clients_[current_]; }
  void leave(const http::Client& endpoint);
  // Sets a function for a change of the endpoint: streams at the old endpoint may hang.
  void on_move(std::function<void()> fn) { on_move_ = std::move(fn); }
  io::Loop& loop() { return loop_; }
  std::string endpoints() const;  // for messages
  // Returns why the last attempt failed; empty: the attempt succeeded, or there was none.
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

// The calls of one owner. Destroying the object cancels the calls without calling back.
class EtcdCalls {
 public:
  // The transport must outlive the object.
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
