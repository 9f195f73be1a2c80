// Parked WAITs and BARRIERs, key watchers, the view of a witness, and the effect of a purge.
#include "store/engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::store {

using detail::Link;
using detail::LinkList;
using detail::Park;
using detail::WaitMap;
using detail::Watchers;
using detail::WatchMap;

Status Engine::wait(Session& session, std::span<const std::string_view> keys) {
  std::vector<std::string_view> missing;
  for (const auto key : keys) {
    if (!present(key)) missing.push_back(key);
  }
  if (!missing.empty()) return park(session, waits_, missing);
  put_u8(session.out, 0);
  return {};
}

Status Engine::barrier(Session& session, std::string_view key, std::int64_t world) {
  // The counter is never reset, as in PyTorch: a barrier key works once.
  LOCKSTEP_TRY_ASSIGN(const std::int64_t count, add(key, 1, session.number));
  // Barriers have a map of their own: the counter's key exists after the first arrival, so a WAIT
  // for it would end at once.
  if (count < world) return park(session, barriers_, {&key, 1});
  put_u8(session.out, 0);
  wake_all(barriers_, key);
  return {};
}

Status Engine::park(Session& session, WaitMap& map, std::span<const std::string_view> keys) {
  if (session.parks_.size() >= limits_.max_parked) {
    return fail(Errc::exhausted, fmt::format("more than {} waits at once", limits_.max_parked));
  }
  // Limits per session: a peer could otherwise fill memory with waits for keys of its choice.
  if (keys.size() > limits_.max_waited_keys - session.waited_keys_) {
    return fail(Errc::exhausted,
                fmt::format("waits for more than {} keys at once", limits_.max_waited_keys));
  }
  // Each parked wait hangs in a list of every missing key. Removing a wait then costs only its own
  // keys, even with thousands of waiting workers.
  session.waited_keys_ += keys.size();
  session.parks_.emplace_back();
  Park& parked = session.parks_.back();
  parked.self = std::prev(session.parks_.end());
  parked.session = &session;
  parked.map = &map;
  parked.missing = keys.size();
  parked.since = now_;
  parked.links.resize(keys.size());
  ++parked_;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto entry = map.find(keys[i]);
    if (entry == map.end()) entry = map.emplace(std::string(keys[i]), LinkList{}).first;
    Link& link = parked.links[i];
    LinkList& list = entry->second;
    link = {list.tail, nullptr, &parked, &*entry};
    (list.tail != nullptr ? list.tail->next : list.head) = &link;
    list.tail = &link;
  }
  return {};
}

// Removes one link from its key's list, and the list from the map if it is now empty.
void Engine::unlink(Link& link) {
  LinkList& list = link.entry->second;
  (link.prev != nullptr ? link.prev->next : list.head) = link.next;
  (link.next != nullptr ? link.next->prev : list.tail) = link.prev;
  WaitMap& map = *link.park->map;
  if (list.head == nullptr) map.erase(map.find(link.entry->first));
  link.entry = nullptr;
}

void Engine::unpark(Park& parked) {
  for (Link& link : parked.links) {
    if (link.entry != nullptr) unlink(link);
  }
  --parked_;
  parked.session->waited_keys_ -= parked.links.size();
  parked.session->parks_.erase(parked.self);
}

void Engine::unpark_all(Session& session) {
  while (!session.parks_.empty())
    unpark(session.parks_.front());
}

void Engine::answer(Park& parked) {
  Session& session = *parked.session;
  put_u8(session.out, 0);
  unpark(parked);
  touch(session);
}

void Engine::link_done(Link& link) {
  Park& parked = *link.park;
  ++effort_;
  unlink(link);
  if (--parked.missing == 0) answer(parked);
}

void Engine::wake_all(WaitMap& map, std::string_view key) {
  const auto entry = map.find(key);
  if (entry == map.end()) return;
  // An answered wait has no other links left, so `next` stays valid.
  for (Link* link = entry->second.head; link != nullptr;)
    link_done(*std::exchange(link, link->next));
}

void Engine::wake_one(std::string_view key) {
  // Answers one waiter. A wait for several keys only loses this key, and the next waiter is tried.
  // If a wait names the key more than once, its links are adjacent.
  for (auto entry = waits_.find(key); entry != waits_.end(); entry = waits_.find(key)) {
    Park& parked = *entry->second.head->park;
    for (Link* link = entry->second.head; link != nullptr && link->park == &parked;) {
      unlink(*std::exchange(link, link->next));
      --parked.missing;
      ++effort_;
    }
    if (parked.missing == 0) return answer(parked);
  }
}

// --- watchers (dialect A only) ---

Status Engine::watch(Session& session, std::string_view key) {
  auto watchers = watchers_.find(key);
  if (watchers == watchers_.end()) watchers = watchers_.emplace(std::string(key), Watchers{}).first;
  watchers->second.sessions.insert(&session);
  session.watched_.insert(&*watchers);
  // A bound on the memory that one client can take.
  if (session.watched_.size() > limits_.max_watched)
    return fail(Errc::exhausted, fmt::format("more than {} watched keys", limits_.max_watched));
  put_u8(session.out, 3);  // "registered"
  return {};
}

void Engine::unwatch(Session& session) {
  for (WatchMap::value_type* entry : session.watched_) {
    entry->second.sessions.erase(&session);
    if (entry->second.sessions.empty()) watchers_.erase(watchers_.find(entry->first));
  }
  session.watched_.clear();
}

void Engine::notify(std::uint8_t change, std::string_view key, std::string_view before,
                    std::string_view after) {
  constexpr std::size_t kBytesPerEffort = 256;
  const auto watchers = watchers_.find(key);
  if (watchers == watchers_.end()) return;
  for (Session* session : watchers->second.sessions) {
    ++effort_;
    // This session is being closed already.
    if (!session->verdict.empty()) continue;
    touch(*session);
    // A watcher that does not read its notices must not use up the host's memory.
    if (session->out.size() > limits_.max_notice_bytes) {
      session->verdict = "does not read the notices it asked for";
      session->unread = true;
      continue;
    }
    put_u8(session->out, change);
    put_string(session->out, key);
    put_string(session->out, before);
    put_string(session->out, after);
    effort_ += (key.size() + before.size() + after.size()) / kBytesPerEffort;
  }
}

// --- for a witness: these change nothing ---

std::vector<WitnessWait> Engine::waits_of(const Session& session, std::size_t most,
                                          std::size_t keys_per_wait) const {
  std::vector<WitnessWait> waits;
  for (const detail::Park& parked : session.parks_) {
    if (waits.size() == most) break;
    WitnessWait& wait = waits.emplace_back();
    wait.missing = parked.missing;
    wait.barrier = parked.map == &barriers_;
    wait.since = parked.since;
    for (const detail::Link& link : parked.links) {
      if (wait.keys.size() == keys_per_wait) break;
      // A link without an entry belongs to a key that exists now.
      if (link.entry != nullptr) wait.keys.push_back(link.entry->first);
    }
  }
  return waits;
}

std::vector<WitnessKey> Engine::keys_for(const std::function<bool(std::string_view)>& wanted,
                                         const WitnessLimits& limits, bool& all) const {
  std::vector<WitnessKey> found;
  std::size_t scanned = 0;
  for (const auto& [key, entry] : keys_) {
    if (++scanned > limits.scanned_keys) {
      all = false;
      break;
    }
    if (key.size() > limits.name_bytes || !wanted(key)) continue;
    if (found.size() == limits.keys) {
      all = false;
      break;
    }
    found.push_back({key, entry.value.substr(0, limits.value_bytes), entry.creator});
  }
  return found;
}

// --- between attempts ---

void Engine::purge_except(std::span<const std::string> prefixes) {
  const auto kept = [&](std::string_view key) {
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [&](const std::string& prefix) { return key.starts_with(prefix); });
  };
  std::erase_if(keys_, [&](const auto& entry) { return !kept(entry.first); });
  std::erase_if(queues_, [&](const auto& entry) { return !kept(entry.first); });
  bytes_ = 0;
  for (const auto& [key, entry] : keys_)
    bytes_ += key.size() + entry.value.size();
  for (const auto& [key, queue] : queues_) {
    bytes_ += key.size();
    for (const auto& item : queue)
      bytes_ += item.size();
  }
  for (WaitMap* map : {&waits_, &barriers_}) {
    std::vector<std::string> gone;
    // Collect the keys first: unparking changes the map.
    for (const auto& [key, list] : *map) {
      if (!kept(key)) gone.push_back(key);
    }
    for (const std::string& key : gone) {
      for (auto entry = map->find(key); entry != map->end(); entry = map->find(key)) {
        unpark(*entry->second.head->park);
      }
    }
  }
}

}  // namespace lockstep::store
