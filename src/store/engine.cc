// The effect of each operation on the key space and on waiting sessions. engine_wait.cc holds
// waits, watchers and purges.
#include "store/engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace lockstep::store {

namespace {

// Kinds of a WATCH_KEY notice.
constexpr std::uint8_t kUpdated = 0;
constexpr std::uint8_t kCreated = 1;
constexpr std::uint8_t kDeleted = 2;

// Returns the number at the start of a text, parsed like PyTorch's server: blanks, a sign, digits.
// Ignores the rest. nullopt: not a number, or too large. Reads at most kFarEnough bytes, because a
// value of only blanks or zeros can be very long.
std::optional<std::int64_t> leading_number(std::string_view text) {
  constexpr std::size_t kFarEnough = 4096;
  text = text.substr(0, kFarEnough);
  const std::size_t start = text.find_first_not_of(" \t\n\v\f\r");
  if (start == std::string_view::npos) return std::nullopt;
  text.remove_prefix(start);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return number;
}

// Replaces a value. Frees the memory of a much larger old value.
void assign_value(std::string& value, std::string_view bytes) {
  constexpr std::size_t kWorthFreeing = 4096;
  if (value.capacity() > kWorthFreeing && bytes.size() < value.capacity() / 4) {
    value = std::string(bytes);
  } else {
    value.assign(bytes);
  }
}

}  // namespace

bool Engine::allowed(const Request& request) const {
  if (request.op == Op::validate || request.op == Op::ping) return true;
  return request.op == Op::add && contains(request.key);
}

Status Engine::handle(Session& session, const Request& request) {
  // The driver limits the effort of a turn, so that a client with expensive requests cannot starve
  // other clients.
  effort_ += 1 + request.items.size();
  if (limits_.only_add && !allowed(request))
    return fail(Errc::invalid_input, "not an ADD to a key of this store");
  switch (request.op) {
    // The reader has checked the magic already.
    case Op::validate:
      return {};
    case Op::ping:
      // PyTorch 2.5 and later put their pid there. Keep the first one: a client's later PINGs may
      // carry anything.
      if (session.pid == 0) session.pid = static_cast<std::uint32_t>(request.number);
      put_u32(session.out, static_cast<std::uint32_t>(request.number));
      return {};
    case Op::set:
      put(request.key, request.value, session.number);
      return {};
    case Op::get:
      return reply_get(session, request.key);
    case Op::compare_set:
      compare_set(session, request);
      return {};
    case Op::add:
      return reply_add(session, request);
    case Op::check:
      // The protocol inverts the sense: 0 means that all keys exist.
      put_u8(session.out, all_present(request.items) ? 0 : 1);
      return {};
    case Op::wait:
      return wait(session, request.items);
    case Op::num_keys:
      put_i64(session.out, static_cast<std::int64_t>(keys_.size()));
      return {};
    case Op::watch_key:
      return watch(session, request.key);
    case Op::delete_key:
      put_i64(session.out, erase(request.key) ? 1 : 0);
      return {};
    case Op::append:
      return append(session, request);
    case Op::multi_get:
      return reply_multi_get(session, request.items);
    case Op::multi_set:
      multi_set(session, request.items);
      return {};
    case Op::cancel_wait:
      // The protocol cancels without naming a wait: all waits of the session go.
      unpark_all(session);
      put_u8(session.out, 1);
      return {};
    case Op::queue_push:
      queue_push(request.key, request.value);
      return {};
    case Op::queue_pop:
      queue_pop(session, request.key);
      return {};
    case Op::queue_len:
      put_u64(session.out, queue_size(request.key));
      return {};
    case Op::list_keys:
      return reply_list(session);
    case Op::barrier:
      return barrier(session, request.key, request.number);
  }
  // Cannot happen: the switch covers every Op.
  return fail(Errc::internal, "an operation the engine does not know");
}

void Engine::drop(Session& session) {
  unpark_all(session);
  unwatch(session);
  if (session.touched_) std::erase(touched_, &session);
  session.touched_ = false;
}

Session* Engine::next_touched() {
  if (touched_.empty()) return nullptr;
  Session* session = touched_.back();
  touched_.pop_back();
  session->touched_ = false;
  return session;
}

void Engine::touch(Session& session) {
  if (std::exchange(session.touched_, true)) return;
  touched_.push_back(&session);
}

// --- keys ---

void Engine::set(std::string_view key, std::string_view value) {
  put(key, value, 0);
}

std::optional<std::string> Engine::get(std::string_view key) const {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return std::nullopt;
  return found->second.value;
}

std::vector<std::string> Engine::keys_that_start_with(std::string_view prefix,
                                                      std::size_t most) const {
  std::vector<std::string> found;
  // Each key is looked at in turn: for messages to the user only.
  for (const auto& [key, entry] : keys_) {
    if (found.size() == most) break;
    if (std::string_view(key).starts_with(prefix)) found.push_back(key);
  }
  return found;
}

bool Engine::contains(std::string_view key) const {
  return keys_.find(key) != keys_.end();
}

bool Engine::present(std::string_view key) const {
  // A queue makes its key present for WAIT and CHECK, as in PyTorch.
  return contains(key) || queues_.find(key) != queues_.end();
}

bool Engine::all_present(std::span<const std::string_view> keys) const {
  return std::all_of(keys.begin(), keys.end(), [&](auto key) { return present(key); });
}

void Engine::put(std::string_view key, std::string_view value, std::uint64_t creator) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) {
    keys_.emplace(std::string(key), detail::Entry{std::string(value), creator});
    ++created_;
    bytes_ += key.size() + value.size();
    if (!waits_.empty()) wake_all(waits_, key);
    if (!watchers_.empty()) notify(kCreated, key, {}, value);
    return;
  }
  // An existing key wakes no waiter: a WAIT for it is never parked.
  std::string& held = found->second.value;
  bytes_ = bytes_ - held.size() + value.size();
  // Notify before the assignment: the notice carries the old value.
  if (!watchers_.empty()) notify(kUpdated, key, held, value);
  assign_value(held, value);
}

Result<std::int64_t> Engine::add(std::string_view key, std::int64_t delta) {
  return add(key, delta, 0);
}

Result<std::int64_t> Engine::add(std::string_view key, std::int64_t delta, std::uint64_t creator) {
  const auto found = keys_.find(key);
  std::int64_t before = 0;
  if (found != keys_.end()) {
    const auto number = leading_number(found->second.value);
    if (!number) return fail(Errc::invalid_input, "ADD to a value that is not a number");
    before = *number;
  }
  // Unsigned arithmetic: an overflow wraps around, as on PyTorch's server, instead of being
  // undefined.
  const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(before) +
                                             static_cast<std::uint64_t>(delta));
  char text[24];
  const char* end = std::to_chars(std::begin(text), std::end(text), sum).ptr;
  put(key, {text, static_cast<std::size_t>(end - text)}, creator);
  return sum;
}

bool Engine::erase(std::string_view key) {
  bool erased = false;
  if (const auto found = keys_.find(key); found != keys_.end()) {
    if (!watchers_.empty()) notify(kDeleted, key, found->second.value, {});
    bytes_ -= found->first.size() + found->second.value.size();
    keys_.erase(found);
    erased = true;
  }
  if (const auto queue = queues_.find(key); queue != queues_.end()) {
    for (const auto& item : queue->second)
      bytes_ -= item.size();
    bytes_ -= queue->first.size();
    queues_.erase(queue);
    erased = true;
  }
  return erased;
}

void Engine::compare_set(Session& session, const Request& request) {
  const auto found = keys_.find(request.key);
  const bool missing = found == keys_.end();
  // PyTorch's rule: an empty `expected` matches a missing key.
  if (missing ? request.value.empty() : found->second.value == request.value) {
    put(request.key, request.desired, session.number);
    put_string(session.out, request.desired);
  } else {
    // For a missing key the reply is `expected` itself: clients of every PyTorch version expect
    // this echo.
    put_string(session.out, missing ? request.value : std::string_view(found->second.value));
  }
}

Status Engine::append(Session& session, const Request& request) {
  const auto found = keys_.find(request.key);
  if (found == keys_.end()) {
    put(request.key, request.value, session.number);
    return {};
  }
  std::string& value = found->second.value;
  if (value.size() + request.value.size() > limits_.max_value_bytes) {
    return fail(Errc::exhausted,
                fmt::format("APPEND to more than {} bytes", limits_.max_value_bytes));
  }
  bytes_ += request.value.size();
  const std::size_t before = value.size();
  value.append(request.value);
  if (!watchers_.empty())
    notify(kUpdated, request.key, std::string_view(value).substr(0, before), value);
  return {};
}

Status Engine::reply_add(Session& session, const Request& request) {
  LOCKSTEP_TRY_ASSIGN(const std::int64_t sum, add(request.key, request.number, session.number));
  put_i64(session.out, sum);
  return {};
}

void Engine::multi_set(Session& session, std::span<const std::string_view> pairs) {
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
    put(pairs[i], pairs[i + 1], session.number);
}

Status Engine::reply_get(Session& session, std::string_view key) {
  const auto found = keys_.find(key);
  if (found != keys_.end()) {
    put_string(session.out, found->second.value);
    return {};
  }
  // Older clients always WAIT first and treat a closed connection as the answer. Newer clients
  // expect an empty value.
  if (session.dialect == Dialect::a) return fail(Errc::not_found, "GET of a missing key");
  put_string(session.out, {});
  return {};
}

Status Engine::reply_multi_get(Session& session, std::span<const std::string_view> keys) {
  std::size_t total = 0;
  for (const auto key : keys) {
    const auto found = keys_.find(key);
    if (found == keys_.end()) {
      if (session.dialect == Dialect::a) {
        return fail(Errc::not_found, "MULTI_GET of a missing key");
      }
      put_u64(session.out, 0);
      total += 8;
      continue;
    }
    const std::string& value = found->second.value;
    total += 8 + value.size();
    // The limit on replies keeps one request from filling this process's memory.
    if (total > limits_.max_message_bytes) {
      return fail(Errc::exhausted,
                  fmt::format("MULTI_GET of more than {} bytes", limits_.max_message_bytes));
    }
    put_string(session.out, value);
  }
  return {};
}

Status Engine::reply_list(Session& session) {
  // Listing costs as much as all keys, so the driver must count it against the session's turn.
  effort_ += keys_.size();
  // Measured first: a refused peer must not get the beginning of the list.
  std::size_t total = 0;
  for (const auto& [key, entry] : keys_)
    total += 8 + key.size();
  if (total > limits_.max_message_bytes)
    return fail(Errc::exhausted,
                fmt::format("LIST_KEYS of more than {} bytes", limits_.max_message_bytes));
  put_u64(session.out, keys_.size());
  for (const auto& [key, entry] : keys_)
    put_string(session.out, key);
  return {};
}

// --- queues ---

std::size_t Engine::queue_size(std::string_view key) const {
  const auto queue = queues_.find(key);
  return queue == queues_.end() ? 0 : queue->second.size();
}

void Engine::queue_push(std::string_view key, std::string_view value) {
  auto queue = queues_.find(key);
  if (queue == queues_.end()) {
    queue = queues_.emplace(std::string(key), std::deque<std::string>()).first;
    bytes_ += key.size();
  }
  queue->second.emplace_back(value);
  bytes_ += value.size();
  // Wake a single waiter: only one can pop the item.
  wake_one(key);
}

void Engine::queue_pop(Session& session, std::string_view key) {
  const auto queue = queues_.find(key);
  // A missing queue has size 0, and no value follows.
  if (queue == queues_.end()) {
    put_i64(session.out, 0);
    return;
  }
  put_u64(session.out, queue->second.size());
  put_string(session.out, queue->second.front());
  bytes_ -= queue->second.front().size();
  queue->second.pop_front();
  if (!queue->second.empty()) return;
  bytes_ -= queue->first.size();
  queues_.erase(queue);
}

}  // namespace lockstep::store
