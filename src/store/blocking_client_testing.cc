// The operations of the blocking test client. blocking_client_io_testing.cc connects, sends and
// receives.
#include "store/blocking_client_testing.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::store {

Status Client::ask(const Request& request, TimePoint deadline) {
  std::string bytes;
  LOCKSTEP_TRY(put_request(bytes, options_.dialect, request));
  return send_all(bytes, deadline);
}

Status Client::ask_key(Op op, std::string_view key, TimePoint deadline, std::string_view value,
                       std::int64_t number) {
  const std::string name = full(key);
  return ask({.op = op, .key = name, .value = value, .number = number}, deadline);
}

Status Client::ask_keys(Op op, std::span<const std::string> keys, TimePoint deadline) {
  std::vector<std::string> names;
  for (const auto& key : keys)
    names.push_back(full(key));
  const std::vector<std::string_view> items(names.begin(), names.end());
  return ask({.op = op, .items = items}, deadline);
}

Status Client::set(std::string_view key, std::string_view value) {
  return ask_key(Op::set, key, deadline(), value);
}

Result<std::string> Client::get(std::string_view key) {
  const std::string name(key);
  LOCKSTEP_TRY(wait({&name, 1}));
  return get_now(key);
}

Result<std::string> Client::get_now(std::string_view key) {
  const auto until = deadline();
  LOCKSTEP_TRY(ask_key(Op::get, key, until));
  return take_string(until);
}

Result<std::int64_t> Client::add(std::string_view key, std::int64_t delta) {
  const auto until = deadline();
  LOCKSTEP_TRY(ask_key(Op::add, key, until, {}, delta));
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t sum, take_u64(until));
  return static_cast<std::int64_t>(sum);
}

Result<std::int64_t> Client::announce() {
  const auto until = deadline();
  LOCKSTEP_TRY(ask({.op = Op::add, .key = "init/", .number = 1}, until));
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t count, take_u64(until));
  return static_cast<std::int64_t>(count);
}

Result<std::string> Client::compare_set(std::string_view key, std::string_view expected,
                                        std::string_view desired) {
  const auto until = deadline();
  const std::string name = full(key);
  LOCKSTEP_TRY(
      ask({.op = Op::compare_set, .key = name, .value = expected, .desired = desired}, until));
  return take_string(until);
}

Result<bool> Client::check(std::span<const std::string> keys) {
  const auto until = deadline();
  LOCKSTEP_TRY(ask_keys(Op::check, keys, until));
  LOCKSTEP_TRY_ASSIGN(const std::uint8_t answer, take_u8(until));
  return answer == 0;
}

Status Client::wait(std::span<const std::string> keys, std::optional<Ms> timeout) {
  const auto until = deadline(timeout);
  LOCKSTEP_TRY(ask_keys(Op::wait, keys, until));
  return await(until, fmt::format("wait timeout after {}ms, keys: {}",
                                  timeout.value_or(options_.timeout).count(), join(keys, ", ")));
}

Result<std::vector<std::string>> Client::multi_get(std::span<const std::string> keys) {
  LOCKSTEP_TRY(wait(keys));
  const auto until = deadline();
  LOCKSTEP_TRY(ask_keys(Op::multi_get, keys, until));
  std::vector<std::string> values;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    LOCKSTEP_TRY_ASSIGN(std::string value, take_string(until));
    values.push_back(std::move(value));
  }
  return values;
}

Status Client::multi_set(std::span<const std::pair<std::string, std::string>> entries) {
  std::vector<std::string> names;
  for (const auto& [key, value] : entries)
    names.push_back(full(key));
  std::vector<std::string_view> items;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    items.push_back(names[i]);
    items.push_back(entries[i].second);
  }
  return ask({.op = Op::multi_set, .items = items}, deadline());
}

Status Client::append(std::string_view key, std::string_view value) {
  return ask_key(Op::append, key, deadline(), value);
}

Result<bool> Client::delete_key(std::string_view key) {
  const auto until = deadline();
  LOCKSTEP_TRY(ask_key(Op::delete_key, key, until));
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t count, take_u64(until));
  return count != 0;
}

Result<std::int64_t> Client::num_keys() {
  const auto until = deadline();
  LOCKSTEP_TRY(ask({.op = Op::num_keys}, until));
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t count, take_u64(until));
  return static_cast<std::int64_t>(count);
}

Status Client::queue_push(std::string_view key, std::string_view value) {
  return ask_key(Op::queue_push, key, deadline(), value);
}

Result<std::optional<std::string>> Client::queue_pop(std::string_view key, bool block) {
  const auto until = deadline();
  const std::string name(key);
  while (true) {
    if (block) LOCKSTEP_TRY(wait({&name, 1}));
    LOCKSTEP_TRY(ask_key(Op::queue_pop, key, until));
    LOCKSTEP_TRY_ASSIGN(const std::uint64_t size, take_u64(until));
    if (size > 0) {
      LOCKSTEP_TRY_ASSIGN(std::string value, take_string(until));
      return value;
    }
    if (!block) return std::nullopt;  // otherwise another client was faster: wait again
  }
}

Result<std::int64_t> Client::queue_len(std::string_view key) {
  const auto until = deadline();
  LOCKSTEP_TRY(ask_key(Op::queue_len, key, until));
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t size, take_u64(until));
  return static_cast<std::int64_t>(size);
}

Result<std::vector<std::string>> Client::list_keys() {
  const auto until = deadline();
  LOCKSTEP_TRY(ask({.op = Op::list_keys}, until));
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t count, take_u64(until));
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < count; ++i) {
    LOCKSTEP_TRY_ASSIGN(std::string key, take_string(until));
    if (key.starts_with(options_.prefix)) key.erase(0, options_.prefix.size());
    keys.push_back(std::move(key));
  }
  return keys;
}

Status Client::barrier(std::string_view key, std::int64_t world, std::optional<Ms> timeout) {
  const auto until = deadline(timeout);
  LOCKSTEP_TRY(ask_key(Op::barrier, key, until, {}, world));
  return await(until, fmt::format("barrier timeout after {}ms, key: {}",
                                  timeout.value_or(options_.timeout).count(), key));
}

Status Client::ping() {
  constexpr std::int64_t kNonce = 0x70696e67;
  const auto until = deadline();
  LOCKSTEP_TRY(ask({.op = Op::ping, .number = kNonce}, until));
  LOCKSTEP_TRY(need(4, until));
  const std::uint32_t echo = load_u32(in_.data() + taken_);
  taken_ += 4;
  if (echo != kNonce)
    return broken({Errc::corrupt, "the store at " + place() + " echoes a wrong PING", {}, 0});
  return {};
}

Status Client::await(TimePoint until, const std::string& what) {
  auto answer = take_u8(until);
  if (answer) return {};
  if (answer.error().code != Errc::timeout) return tl::make_unexpected(std::move(answer).error());
  // The older protocol cannot cancel a wait. Its late answer would be read as the answer to the
  // next request.
  if (options_.dialect == Dialect::a) {
    fd_.reset();
  } else {
    LOCKSTEP_TRY(cancel_wait());
  }
  return fail(Errc::timeout, what);
}

Status Client::cancel_wait() {
  constexpr Ms kGrace{5000};
  const auto until = deadline(kGrace);
  LOCKSTEP_TRY(ask({.op = Op::cancel_wait}, until));
  while (true) {
    LOCKSTEP_TRY_ASSIGN(const std::uint8_t answer, take_u8(until));
    if (answer == 1) return {};  // a 0 before the 1: the wait had just ended
  }
}

}  // namespace lockstep::store
