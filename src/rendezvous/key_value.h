// Key-value stores that the agents of a job share, as PyTorch's Store has them: what rank exchange,
// exit barrier and notices are made of, whichever backend holds it. Implementations: tcp_key_value
// (c10d, static), file_store (c10d with store_type=file), etcd_v2.
//
// No callback runs inside the call that asks; any callback may destroy the store or ask again; a
// destroyed store never calls back. Keys are given without the "/" or coding that a store's own
// wire format puts before or around them.
#pragma once

#include "base/error.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::rendezvous {

class KeyValue {
 public:
  using Ms = std::chrono::milliseconds;
  using Keys = std::vector<std::string>;
  using Entries = std::vector<std::pair<std::string, std::string>>;
  template <class T>
  using Done = std::function<void(Result<T>)>;

  virtual ~KeyValue() = default;

  // `done` may be empty. Requests take effect in the order in which they were made, as long as none
  // of them waits.
  virtual void set(std::string_view key, std::string_view value, Done<void> done) = 0;
  virtual void multi_set(const Entries& entries, Done<void> done) = 0;
  virtual void add(std::string_view key, std::int64_t delta, Done<std::int64_t> done) = 0;
  // Stores the value where the key is missing; the value that is there then.
  virtual void put_if_absent(std::string_view key, std::string_view value,
                             Done<std::string> done) = 0;
  // The value, if there is one, at once.
  virtual void probe(std::string_view key, Done<std::optional<std::string>> done) = 0;
  // These wait for all keys to exist; Errc::timeout when they don't in time. They may queue behind
  // one another: two at once only where it does not matter which comes first.
  virtual void multi_get(const Keys& keys, Ms timeout, Done<Keys> done) = 0;
  virtual void wait(const Keys& keys, Ms timeout, Done<void> done) = 0;

  // Takes back every multi_get() and wait() under way: they never call back.
  virtual void forget_waits() = 0;

  // A wait beside all others, without an end of its own. Destroying it ends it; `done` may do so.
  class Watch {
   public:
    virtual ~Watch() = default;
    // The key exists. Known before its value is, and also where that is lost with the store.
    virtual bool there() const { return false; }
  };
  // Calls with the key's value once it exists; never with an error (a lost store is told
  // elsewhere).
  virtual std::unique_ptr<Watch> watch(std::string_view key,
                                       std::function<void(std::string)> done) = 0;
};

}  // namespace lockstep::rendezvous
