// Requests and replies of etcd's v3 API in its JSON gateway's form. Pure. 64-bit numbers travel as
// text, bytes as base64, and zero or empty fields are omitted.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rendezvous::etcd3 {

struct Etcd3Kv {
  std::string key;
  std::string value;
  std::int64_t create_revision = 0;
  std::int64_t mod_revision = 0;
  std::int64_t lease = 0;
};

struct Etcd3Compare {
  enum class What { create_revision, mod_revision, value };
  What what = What::create_revision;
  std::string key;
  std::int64_t number = 0;  // of a revision; 0: the key does not exist
  std::string value;
};

struct Etcd3Op {
  enum class Kind { put, range, remove };
  Kind kind = Kind::range;
  std::string key;
  std::string value;       // put
  std::int64_t lease = 0;  // put; 0: none
};

struct Etcd3Txn {
  std::vector<Etcd3Compare> compare;  // if all hold, success runs, else failure
  std::vector<Etcd3Op> success;
  std::vector<Etcd3Op> failure;
};

// The answer to any call. revision: the store's revision at that time.
struct Etcd3Reply {
  std::int64_t revision = 0;
  std::vector<Etcd3Kv> kvs;  // range
  std::int64_t deleted = 0;
  std::int64_t lease = 0;  // grant
  std::int64_t ttl = 0;    // grant and keep_alive: seconds; 0: the lease does not exist
  std::string token;       // authenticate
  bool succeeded = false;  // transaction
  std::vector<std::vector<Etcd3Kv>> ranges;  // transaction: an entry for each op
};

struct Etcd3Event {
  bool deleted = false;
  Etcd3Kv kv;  // deletion: only key and mod_revision
};

struct Etcd3WatchReply {
  std::int64_t revision = 0;
  std::vector<Etcd3Event> events;
  bool canceled = false;
  std::int64_t compact_revision = 0;  // canceled: older revisions are compacted
  std::string reason;                 // why the watch was canceled, or why the stream ends
};

// Limit for an answer or a line of a watch. A job has two small keys in etcd, and its facts name at
// most 65,536 ranks.
inline constexpr std::size_t kEtcd3AnswerLimit = 1U << 20;

std::string etcd3_range(std::string_view key, std::string_view range_end);
std::string etcd3_put(std::string_view key, std::string_view value, std::int64_t lease);
std::string etcd3_delete(std::string_view key, std::string_view range_end);
std::string etcd3_txn(const Etcd3Txn& txn);
std::string etcd3_grant(std::int64_t ttl);
std::string etcd3_lease(std::int64_t id);  // for keep alive and revoke
std::string etcd3_authenticate(std::string_view user, std::string_view password);
std::string etcd3_watch(std::string_view key, std::string_view range_end, std::int64_t revision);
std::string etcd3_compact(std::int64_t revision);

// Returns the range end for all keys with the prefix.
std::string etcd3_prefix_end(std::string_view prefix);

Result<Etcd3Reply> parse_etcd3_reply(std::string_view body);
// Parses one line of a watch stream.
Result<Etcd3WatchReply> parse_etcd3_watch(std::string_view line);

// A refusal: etcd's message and the gRPC code; code 0: not from the gateway.
struct Etcd3Refusal {
  int code = 0;
  std::string message;
};
inline constexpr int kGrpcUnauthenticated = 16;
Etcd3Refusal parse_etcd3_refusal(std::string_view body);

}  // namespace lockstep::rendezvous::etcd3
