// The store itself, pure: the key space and the waits on keys. Handles requests and appends replies
// to the outgoing bytes of the asking session, and of every session whose wait has ended. No
// sockets. The driver tells the time, which only witnesses need.
#pragma once

#include "base/error.h"
#include "store/wire.h"
#include "store/witness.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lockstep::store {

class Engine;
class Session;

namespace detail {
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};
template <class V>
using TextMap = std::unordered_map<std::string, V, TextHash, std::equal_to<>>;

struct Park;

// One missing key of one parked wait, as an element of the list of all waits for that key.
struct Link {
  Link* prev = nullptr;
  Link* next = nullptr;
  Park* park = nullptr;
  std::pair<const std::string, struct LinkList>* entry = nullptr;  // nullptr: the key exists now
};
struct LinkList {
  Link* head = nullptr;
  Link* tail = nullptr;
};
using WaitMap = TextMap<LinkList>;

struct Watchers {
  std::set<Session*> sessions;
};
using WatchMap = TextMap<Watchers>;

struct Entry {
  std::string value;
  std::uint64_t creator = 0;  // Session::number. 0: the process that hosts the store
};

// A WAIT or BARRIER without an answer so far.
struct Park {
  Session* session = nullptr;
  WaitMap* map = nullptr;
  std::size_t missing = 0;
  TimePoint since = {};
  std::vector<Link> links;  // never resized once linked
  std::list<Park>::iterator self;
};
}  // namespace detail

// One connection as seen by the engine. The driver owns the session and must call Engine::drop()
// before destroying it.
class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::string out;      // unsent replies; the driver removes bytes from the front
  std::string verdict;  // not empty: close this connection, for this reason
  bool unread = false;  // with a verdict: close at once, since the peer does not read
  Dialect dialect = Dialect::d;
  std::uint64_t number = 0;  // set by the driver: see WitnessSession
  std::uint32_t pid = 0;     // from the first PING

  std::size_t parked() const { return parks_.size(); }

 private:
  friend class Engine;
  std::list<detail::Park> parks_;
  std::size_t waited_keys_ = 0;  // links of parks_
  std::set<detail::WatchMap::value_type*> watched_;
  bool touched_ = false;
};

class Engine {
 public:
  explicit Engine(Limits limits = {}) : limits_(limits) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Limits& limits() const { return limits_; }

  // Sets the time at which later requests count as received.
  void tell_time(TimePoint now) { now_ = now; }

  // Carries out one request. A failure means: close this connection after sending the earlier
  // replies. Other sessions are not affected.
  Status handle(Session& session, const Request& request);
  // Drops the session's waits and watches. Call when the connection is gone.
  void drop(Session& session);
  // Returns a session that got output or a verdict through another session's request since the last
  // call. Call until nullptr.
  Session* next_touched();

  // For the process that hosts the store. These do not count as requests.
  void set(std::string_view key, std::string_view value);
  std::optional<std::string> get(std::string_view key) const;
  Result<std::int64_t> add(std::string_view key, std::int64_t delta);
  bool erase(std::string_view key);
  bool contains(std::string_view key) const;
  // Returns up to `most` keys in no particular order. Scans every key, so use it for messages only.
  std::vector<std::string> keys_that_start_with(std::string_view prefix, std::size_t most) const;

  // For a witness: up to `most` unanswered waits of a session, and the keys that `wanted` accepts.
  // keys_for() looks at each key in turn, up to limits.scanned_keys. Sets `all` to false if a limit
  // has cut the list.
  std::vector<WitnessWait> waits_of(const Session& session, std::size_t most,
                                    std::size_t keys_per_wait) const;
  std::vector<WitnessKey> keys_for(const std::function<bool(std::string_view)>& wanted,
                                   const WitnessLimits& limits, bool& all) const;

  // Makes the store as good as new between attempts: drops every key, queue and parked wait.
  // Dropped waits are never answered. Connections stay.
  void purge() { purge_except({}); }
  // Like purge(), but keeps keys (as on the wire) with one of these prefixes, and the waits for
  // such keys only.
  void purge_except(std::span<const std::string> prefixes);

  std::size_t num_keys() const { return keys_.size(); }
  std::uint64_t created() const { return created_; }  // counts the keys that were made so far
  std::size_t bytes() const { return bytes_; }        // of keys and values, including queues
  std::size_t parked() const { return parked_; }      // unanswered waits and barriers
  // Grows with the work done: by one for each request, plus its cost beyond the bytes of request
  // and reply: keys scanned, waits ended, notices written. The driver uses it to give every
  // connection a turn.
  std::uint64_t effort() const { return effort_; }

 private:
  bool allowed(const Request& request) const;  // with limits.only_add
  Result<std::int64_t> add(std::string_view key, std::int64_t delta, std::uint64_t creator);
  Status reply_add(Session& session, const Request& request);
  void multi_set(Session& session, std::span<const std::string_view> pairs);
  Status reply_get(Session& session, std::string_view key);
  Status reply_multi_get(Session& session, std::span<const std::string_view> keys);
  Status reply_list(Session& session);
  void compare_set(Session& session, const Request& request);
  Status append(Session& session, const Request& request);
  Status wait(Session& session, std::span<const std::string_view> keys);
  Status barrier(Session& session, std::string_view key, std::int64_t world);
  Status watch(Session& session, std::string_view key);
  void queue_push(std::string_view key, std::string_view value);
  void queue_pop(Session& session, std::string_view key);

  void put(std::string_view key, std::string_view value, std::uint64_t creator);
  bool present(std::string_view key) const;
  bool all_present(std::span<const std::string_view> keys) const;
  std::size_t queue_size(std::string_view key) const;
  Status park(Session& session, detail::WaitMap& map, std::span<const std::string_view> keys);
  void unlink(detail::Link& link);
  void unpark(detail::Park& park);
  void unpark_all(Session& session);
  void answer(detail::Park& parked);
  void link_done(detail::Link& link);  // answers the wait if this was the last missing key
  void wake_all(detail::WaitMap& map, std::string_view key);
  void wake_one(std::string_view key);
  void touch(Session& session);
  void notify(std::uint8_t change, std::string_view key, std::string_view before,
              std::string_view after);
  void unwatch(Session& session);

  Limits limits_;
  detail::TextMap<detail::Entry> keys_;
  detail::TextMap<std::deque<std::string>> queues_;
  detail::WaitMap waits_;     // key -> WAITs that need the key
  detail::WaitMap barriers_;  // key -> BARRIERs at the key
  detail::WatchMap watchers_;
  std::vector<Session*> touched_;
  std::size_t bytes_ = 0;
  std::size_t parked_ = 0;
  std::uint64_t created_ = 0;
  std::uint64_t effort_ = 0;
  TimePoint now_ = {};
};

}  // namespace lockstep::store
