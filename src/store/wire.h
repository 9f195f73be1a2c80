// The TCPStore wire protocol, pure: an incremental, bounded reader of requests in both dialects,
// and the encoders of either side. The first bytes of a connection tell its dialect.
// docs/protocols/tcpstore.md has the layout of every message.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::store {

enum class Dialect : std::uint8_t {
  unknown,
  a,  // PyTorch up to 2.0: no greeting, SET is 0
  d,  // PyTorch from 2.2: VALIDATE first, SET is 1
};

enum class Op : std::uint8_t {
  validate,
  set,
  compare_set,
  get,
  add,
  check,
  wait,
  num_keys,
  watch_key,
  delete_key,
  append,
  multi_get,
  multi_set,
  cancel_wait,
  ping,
  queue_push,
  queue_pop,
  queue_len,
  list_keys,
  barrier,
};
inline constexpr std::size_t kOpCount = 20;
inline constexpr std::uint32_t kMagic = 0x3C85F7CE;

std::string_view op_name(Op op);
// Returns the opcode of `op` in a dialect. nullopt: the dialect has no such operation.
std::optional<std::uint8_t> opcode(Dialect dialect, Op op);

// Limits for a single peer. A declared length is checked against these limits. Even a legal length
// takes no memory before its bytes have arrived.
struct Limits {
  std::size_t max_key_bytes = 64U << 10;
  std::size_t max_value_bytes = 256U << 20;
  std::size_t max_keys = 128U << 10;           // per multi operation
  std::size_t max_message_bytes = 512U << 20;  // a whole request, a whole reply
  std::size_t max_parked = 1024;               // waits parked at once by one connection
  std::size_t max_waited_keys = 256U << 10;    // missing keys of all these waits together
  std::size_t max_watched = 1024;              // keys watched by one connection
  std::size_t max_notice_bytes = 16U << 20;    // unread notices of one connection
  bool only_add = false;  // clients only ADD, and only to keys that the host of the store has made
};

// One request. `op` decides which fields count. The views point into the received bytes.
struct Request {
  Op op = Op::ping;
  std::string_view key = {};
  std::string_view value = {};    // SET, APPEND, QUEUE_PUSH; COMPARE_SET: expected
  std::string_view desired = {};  // COMPARE_SET
  std::int64_t number = 0;  // ADD: delta; BARRIER: world size; VALIDATE, PING: the u32 as sent
  std::span<const std::string_view> items = {};  // keys; for MULTI_SET key, value, key, value, ...
};

// Cuts the bytes of one connection into requests. The work is linear in the bytes, no matter how
// they are split.
class RequestReader {
 public:
  enum class Step { request, more, error };

  // `limits` must outlive the reader.
  explicit RequestReader(const Limits& limits) : limits_(&limits) {}

  // Takes bytes from the front of `chunk`. request: `request` is complete, and valid until the next
  // call or until the chunk's memory is freed. more: the chunk is used up. error: see error(),
  // final.
  Step next(std::string_view& chunk, Request& request);

  Dialect dialect() const { return dialect_; }
  const std::string& error() const { return error_; }
  std::size_t buffered() const { return pending_.size(); }

 private:
  // Progress within the message at the front. Resumable at any item.
  struct Scan {
    std::size_t pos = 0;     // bytes of the message parsed so far
    std::size_t need = 1;    // bytes needed to parse the next item
    std::uint64_t left = 0;  // items left in the open list
    std::uint8_t field = 0;  // index in the operation's layout
    Op op = Op::ping;
    bool list_open = false;
  };

  Step scan(std::string_view bytes);
  Step scan_op(std::string_view bytes);
  Step scan_greeting(std::string_view bytes);
  Step scan_string(std::string_view bytes, bool is_key);
  Step scan_list(std::string_view bytes, bool pairs);
  bool have(std::string_view bytes, std::size_t more);
  Step broken(std::string text);
  void decode(std::string_view bytes, Request& request);
  void forget_message();

  const Limits* limits_;
  std::string pending_;                  // the one incomplete message
  std::vector<std::string_view> items_;  // backs Request::items
  std::string error_;
  Scan scan_;
  Dialect dialect_ = Dialect::unknown;
  bool spent_ = false;  // pending_ holds a request that was already returned
};

// Little-endian building blocks of requests and replies.
void put_u8(std::string& out, std::uint8_t value);
void put_u32(std::string& out, std::uint32_t value);
void put_u64(std::string& out, std::uint64_t value);
void put_i64(std::string& out, std::int64_t value);
void put_string(std::string& out, std::string_view value);
std::uint32_t load_u32(const char* bytes);
std::uint64_t load_u64(const char* bytes);

// Appends `request` in the encoding of a client of `dialect`. Fails if the dialect has no such
// operation.
Status put_request(std::string& out, Dialect dialect, const Request& request);

// Returns the greeting of a client of `dialect`: VALIDATE, and a PING whose echo proves that the
// server is a TCPStore. Empty for dialect A, which has no greeting.
std::string greeting(Dialect dialect, std::uint32_t nonce);

}  // namespace lockstep::store
