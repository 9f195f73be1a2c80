// A key-value store shared by the agents of a job, with the operations of PyTorch's Store. Rank
// exchange, exit barrier and failure notes build on this interface, whatever the backend.
// Implementations: tcp_key_value (c10d, static), file_store (c10d with store_type=file), etcd_v2.
//
// No callback runs inside the call that takes it. Any callback may destroy the store or make
// another request. A destroyed store never calls back. Keys are passed without the "/" or the
// encoding of a store's wire format.
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

  // `done` may be empty. Requests take effect in order, as long as none of them waits.
  virtual void set(std::string_view key, std::string_view value, Done<void> done) = 0;
  virtual void multi_set(const Entries& entries, Done<void> done) = 0;
  virtual void add(std::string_view key, std::int64_t delta, Done<std::int64_t> done) = 0;
  // Stores the value if the key is missing. Returns the value now stored.
  virtual void put_if_absent(std::string_view key, std::string_view value,
                             Done<std::string> done) = 0;
  // Returns the value, or nullopt if the key is missing, without waiting.
  virtual void probe(std::string_view key, Done<std::optional<std::string>> done) = 0;
  // Wait until all keys exist; Errc::timeout if they do not in time. Waits may queue behind one
  // another. So start two at once only if their order does not matter.
  virtual void multi_get(const Keys& keys, Ms timeout, Done<Keys> done) = 0;
  virtual void wait(const Keys& keys, Ms timeout, Done<void> done) = 0;

  // Cancels every pending multi_get() and wait() without calling back.
  virtual void forget_waits() = 0;

  // A wait independent of all others, without a timeout. Destroying the watch cancels the wait;
  // `done` may do so.
  class Watch {
   public:
    virtual ~Watch() = default;
    // Returns whether the key exists. Known before the value arrives, even if a lost store loses
    // the value.
    virtual bool there() const { return false; }
  };
  // Calls `done` with the key's value once the key exists. Never reports an error; a lost store is
  // reported elsewhere.
  virtual std::unique_ptr<Watch> watch(std::string_view key,
                                       std::function<void(std::string)> done) = 0;
};

}  // namespace lockstep::rendezvous
