// The store itself, pure: a key space, and who waits for what. Fed with requests, it appends
// replies to the outgoing bytes of the asking session and of those whose wait is over. No sockets,
// no time.
#pragma once

#include "base/error.h"
#include "store/wire.h"

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

// One missing key of one parked wait, in the list of all who wait for that key.
struct Link {
  Link* prev = nullptr;
  Link* next = nullptr;
  Park* park = nullptr;
  std::pair<const std::string, struct LinkList>* entry = nullptr;  // nullptr: no longer waited for
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

// A WAIT or BARRIER whose answer is still owed.
struct Park {
  Session* session = nullptr;
  WaitMap* map = nullptr;
  std::size_t missing = 0;
  std::vector<Link> links;  // never resized once linked
  std::list<Park>::iterator self;
};
}  // namespace detail

// One connection as the engine knows it. The driver owns it and must call Engine::drop() before it
// goes.
class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::string out;      // replies not yet sent; the driver takes from the front
  std::string verdict;  // not empty: the engine wants this connection closed, and why
  bool unread = false;  // with a verdict: the peer does not read, so nothing is owed to it
  Dialect dialect = Dialect::d;

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

  // Carries out one request. A failure means: close this connection (what was replied before still
  // counts); nobody else is affected.
  Status handle(Session& session, const Request& request);
  // Forgets the session's waits and watches, because its connection is gone.
  void drop(Session& session);
  // Returns, one per call, the sessions that got output or a verdict through another one's request
  // since the last time; nullptr: no more.
  Session* next_touched();

  // For the process that hosts the store.
  void set(std::string_view key, std::string_view value);
  std::optional<std::string> get(std::string_view key) const;
  Result<std::int64_t> add(std::string_view key, std::int64_t delta);
  bool erase(std::string_view key);
  bool contains(std::string_view key) const;
  // The keys come in no order. It looks at every key, so it is for messages, not for requests.
  std::vector<std::string> keys_that_start_with(std::string_view prefix, std::size_t most) const;

  // Between attempts: forgets every key, queue and parked wait, so that the store is as good as
  // new. Forgotten waits are never answered; connections stay.
  void purge() { purge_except({}); }
  // As purge(), but keeps keys (as on the wire) that start with one of `prefixes`, and the waits
  // that wait only for such keys.
  void purge_except(std::span<const std::string> prefixes);

  std::size_t num_keys() const { return keys_.size(); }
  std::size_t bytes() const { return bytes_; }    // of keys and values, queues included
  std::size_t parked() const { return parked_; }  // waits and barriers not answered yet
  // Grows with the work done: by one for a request, and by what it costs beyond its own bytes and
  // its reply's: keys looked at, waits ended, notices written. A driver takes turns by it.
  std::uint64_t effort() const { return effort_; }

 private:
  Status reply_add(Session& session, const Request& request);
  void multi_set(std::span<const std::string_view> pairs);
  Status reply_get(Session& session, std::string_view key);
  Status reply_multi_get(Session& session, std::span<const std::string_view> keys);
  Status reply_list(Session& session);
  void compare_set(Session& session, const Request& request);
  Status append(const Request& request);
  Status wait(Session& session, std::span<const std::string_view> keys);
  Status barrier(Session& session, std::string_view key, std::int64_t world);
  Status watch(Session& session, std::string_view key);
  void queue_push(std::string_view key, std::string_view value);
  void queue_pop(Session& session, std::string_view key);

  void put(std::string_view key, std::string_view value);
  bool present(std::string_view key) const;
  bool all_present(std::span<const std::string_view> keys) const;
  std::size_t queue_size(std::string_view key) const;
  Status park(Session& session, detail::WaitMap& map, std::span<const std::string_view> keys);
  void unlink(detail::Link& link);
  void unpark(detail::Park& park);
  void unpark_all(Session& session);
  void answer(detail::Park& parked);
  void link_done(detail::Link& link);  // answers the wait when no key is missing any more
  void wake_all(detail::WaitMap& map, std::string_view key);
  void wake_one(std::string_view key);
  void touch(Session& session);
  void notify(std::uint8_t change, std::string_view key, std::string_view before,
              std::string_view after);
  void unwatch(Session& session);

  Limits limits_;
  detail::TextMap<std::string> keys_;
  detail::TextMap<std::deque<std::string>> queues_;
  detail::WaitMap waits_;     // key -> WAITs that miss it
  detail::WaitMap barriers_;  // key -> BARRIERs that wait there
  detail::WatchMap watchers_;
  std::vector<Session*> touched_;
  std::size_t bytes_ = 0;
  std::size_t parked_ = 0;
  std::uint64_t effort_ = 0;
};

}  // namespace lockstep::store
