// etcd's v3 API as its JSON gateway has it: request bodies and replies. Pure. Numbers of 64 bits
// travel as text, bytes in base64, and what is zero or empty is left out.
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
  std::int64_t number = 0;  // of a revision; 0: the key is not there
  std::string value;
};

struct Etcd3Op {
  enum class Kind { put, range, remove };
  Kind kind = Kind::range;
  std::string key;
  std::string value;       // of put
  std::int64_t lease = 0;  // of put; 0: none
};

struct Etcd3Txn {
  std::vector<Etcd3Compare> compare;  // all of them hold: success, else failure
  std::vector<Etcd3Op> success;
  std::vector<Etcd3Op> failure;
};

// The answer to any call. revision: the store's at that time.
struct Etcd3Reply {
  std::int64_t revision = 0;
  std::vector<Etcd3Kv> kvs;  // of a range
  std::int64_t deleted = 0;
  std::int64_t lease = 0;  // of grant
  std::int64_t ttl = 0;    // of grant and keep_alive: seconds; 0: there is no such lease
  std::string token;       // of authenticate
  bool succeeded = false;  // of a transaction
  std::vector<std::vector<Etcd3Kv>> ranges;  // of a transaction: an entry for each op
};

struct Etcd3Event {
  bool deleted = false;
  Etcd3Kv kv;  // of a deletion: key and mod_revision
};

struct Etcd3WatchReply {
  std::int64_t revision = 0;
  std::vector<Etcd3Event> events;
  bool canceled = false;
  std::int64_t compact_revision = 0;  // canceled: what is older is gone
  std::string reason;                 // canceled, or why the stream ends
};

// Bytes of an answer, or of one line of a watch. Two small keys are all that a job has in etcd, and
// its facts name at most 65,536 ranks.
inline constexpr std::size_t kEtcd3AnswerLimit = 1U << 20;

std::string etcd3_range(std::string_view key, std::string_view range_end);
std::string etcd3_put(std::string_view key, std::string_view value, std::int64_t lease);
std::string etcd3_delete(std::string_view key, std::string_view range_end);
std::string etcd3_txn(const Etcd3Txn& txn);
std::string etcd3_grant(std::int64_t ttl);
std::string etcd3_lease(std::int64_t id);  // keep alive and revoke
std::string etcd3_authenticate(std::string_view user, std::string_view password);
std::string etcd3_watch(std::string_view key, std::string_view range_end, std::int64_t revision);
std::string etcd3_compact(std::int64_t revision);

// The end of the range of all keys that begin with `prefix`.
std::string etcd3_prefix_end(std::string_view prefix);

Result<Etcd3Reply> parse_etcd3_reply(std::string_view body);
// One line of a watch stream.
Result<Etcd3WatchReply> parse_etcd3_watch(std::string_view line);

// What a refusal says: etcd's message, and the gRPC code (0: it is none of the gateway's).
struct Etcd3Refusal {
  int code = 0;
  std::string message;
};
inline constexpr int kGrpcUnauthenticated = 16;
Etcd3Refusal parse_etcd3_refusal(std::string_view body);

}  // namespace lockstep::rendezvous::etcd3
