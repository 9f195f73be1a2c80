// JSON of etcd's v3 gateway.
#include "rendezvous/etcd3/etcd3_codec.h"

#include "base/text.h"
#include "codec/base64.h"
#include "codec/json.h"

#include <algorithm>

namespace lockstep::rendezvous::etcd3 {
namespace {

using Json = nlohmann::json;
using codec::base64_encode;

std::string print(const Json& json) {
  return codec::print_json(json);
}

// JSON numbers are doubles for many programs, so the gateway writes 64-bit ones as text.
Json number(std::int64_t value) {
  return std::to_string(value);
}

// Returns a number, which may come as text; missing: 0.
std::int64_t get_number(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return 0;
  if (found->is_string()) return parse_int(found->get_ref<const std::string&>()).value_or(0);
  return found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

std::string get_text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool get_flag(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

// Returns a revision, small enough to add to.
std::int64_t get_revision(const Json& json, const char* name) {
  return std::clamp<std::int64_t>(get_number(json, name), 0, INT64_MAX / 2);
}

// Returns whether the text is a valid token. The token goes into a header field of later requests,
// so it must not contain anything that ends the field.
bool is_token(std::string_view text) {
  constexpr std::size_t kLongest = 8192;
  return text.size() <= kLongest &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// Without these bounds an answer of many tiny values would block the loop for seconds.
constexpr codec::JsonLimits kLimits{
    .bytes = kEtcd3AnswerLimit, .members = 4096, .values = 32U << 10};

Json parse(std::string_view text) {
  return codec::parse_json(text, kLimits);
}

const Json& get_object(const Json& json, const char* name) {
  static const Json none = Json::object();
  const auto found = json.find(name);
  return found != json.end() && found->is_object() ? *found : none;
}

const Json& get_list(const Json& json, const char* name) {
  static const Json none = Json::array();
  const auto found = json.find(name);
  return found != json.end() && found->is_array() ? *found : none;
}

Result<Etcd3Kv> parse_kv(const Json& json) {
  if (!json.is_object())
    return fail(Errc::corrupt, "a key-value pair in the answer is not a JSON object");
  Etcd3Kv kv;
  LOCKSTEP_TRY_ASSIGN(kv.key, codec::base64_decode(get_text(json, "key")));
  LOCKSTEP_TRY_ASSIGN(kv.value, codec::base64_decode(get_text(json, "value")));
  kv.create_revision = get_revision(json, "create_revision");
  kv.mod_revision = get_revision(json, "mod_revision");
  kv.lease = get_number(json, "lease");
  return kv;
}

Result<std::vector<Etcd3Kv>> parse_kvs(const Json& list) {
  std::vector<Etcd3Kv> kvs;
  kvs.reserve(list.size());
  for (const Json& item : list) {
    LOCKSTEP_TRY_ASSIGN(auto kv, parse_kv(item));
    kvs.push_back(std::move(kv));
  }
  return kvs;
}

Json compare_json(const Etcd3Compare& compare) {
  Json json{{"key", base64_encode(compare.key)}, {"result", "EQUAL"}};
  switch (compare.what) {
    case Etcd3Compare::What::create_revision:
      json["target"] = "CREATE";
      json["create_revision"] = number(compare.number);
      break;
    case Etcd3Compare::What::mod_revision:
      json["target"] = "MOD";
      json["mod_revision"] = number(compare.number);
      break;
    case Etcd3Compare::What::value:
      json["target"] = "VALUE";
      json["value"] = base64_encode(compare.value);
      break;
  }
  return json;
}

Json put_json(std::string_view key, std::string_view value, std::int64_t lease) {
  Json json{{"key", base64_encode(key)}, {"value", base64_encode(value)}};
  // Zero fields are omitted, as the gateway does.
  if (lease != 0) json["lease"] = number(lease);
  return json;
}

Json range_json(std::string_view key, std::string_view range_end) {
  Json json{{"key", base64_encode(key)}};
  if (!range_end.empty()) json["range_end"] = base64_encode(range_end);
  return json;
}

Json op_json(const Etcd3Op& op) {
  switch (op.kind) {
    case Etcd3Op::Kind::put:
      return {{"request_put", put_json(op.key, op.value, op.lease)}};
    case Etcd3Op::Kind::remove:
      return {{"request_delete_range", range_json(op.key, "")}};
    case Etcd3Op::Kind::range:
      break;
  }
  return {{"request_range", range_json(op.key, "")}};
}

Json ops_json(const std::vector<Etcd3Op>& ops) {
  Json list = Json::array();
  for (const Etcd3Op& op : ops)
    list.push_back(op_json(op));
  return list;
}

}  // namespace

std::string etcd3_range(std::string_view key, std::string_view range_end) {
  return print(range_json(key, range_end));
}

std::string etcd3_put(std::string_view key, std::string_view value, std::int64_t lease) {
  return print(put_json(key, value, lease));
}

std::string etcd3_delete(std::string_view key, std::string_view range_end) {
  return print(range_json(key, range_end));
}

std::string etcd3_txn(const Etcd3Txn& txn) {
  Json compare = Json::array();
  for (const Etcd3Compare& one : txn.compare)
    compare.push_back(compare_json(one));
  return print({{"compare", compare},
                {"success", ops_json(txn.success)},
                {"failure", ops_json(txn.failure)}});
}

std::string etcd3_grant(std::int64_t ttl) {
  return print({{"TTL", number(ttl)}});
}

std::string etcd3_lease(std::int64_t id) {
  return print({{"ID", number(id)}});
}

std::string etcd3_authenticate(std::string_view user, std::string_view password) {
  // Bytes that are not UTF-8 cannot be sent, and would never be a valid password.
  return print({{"name", user}, {"password", password}});
}

std::string etcd3_watch(std::string_view key, std::string_view range_end, std::int64_t revision) {
  Json json = range_json(key, range_end);
  json["start_revision"] = number(revision);
  return print({{"create_request", json}});
}

std::string etcd3_compact(std::int64_t revision) {
  return print({{"revision", number(revision)}});
}

std::string etcd3_prefix_end(std::string_view prefix) {
  std::string end(prefix);
  // The next key after the prefix: a last byte of 0xFF carries over.
  while (!end.empty() && end.back() == '\xFF')
    end.pop_back();
  // etcd: up to the last key.
  if (end.empty()) return std::string(1, '\0');
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

Result<Etcd3Reply> parse_etcd3_reply(std::string_view body) {
  Json json = parse(body);
  // etcd treats some calls as streams, and puts their replies into `result`.
  if (json.is_object() && json.contains("result")) json = Json(get_object(json, "result"));
  if (!json.is_object())
    return fail(Errc::corrupt, "not an answer of etcd: '" + printable(strip(body), 100) + "'");
  Etcd3Reply reply;
  reply.revision = get_revision(get_object(json, "header"), "revision");
  LOCKSTEP_TRY_ASSIGN(reply.kvs, parse_kvs(get_list(json, "kvs")));
  reply.deleted = get_number(json, "deleted");
  reply.lease = get_number(json, "ID");
  reply.ttl = get_number(json, "TTL");
  reply.token = get_text(json, "token");
  if (!is_token(reply.token))
    return fail(Errc::corrupt, "the token for later requests has invalid bytes or is too long");
  reply.succeeded = get_flag(json, "succeeded");
  for (const Json& response : get_list(json, "responses")) {
    if (!response.is_object())
      return fail(Errc::corrupt, "a part of the transaction's answer is not a JSON object");
    LOCKSTEP_TRY_ASSIGN(auto kvs,
                        parse_kvs(get_list(get_object(response, "response_range"), "kvs")));
    reply.ranges.push_back(std::move(kvs));
  }
  return reply;
}

Result<Etcd3WatchReply> parse_etcd3_watch(std::string_view line) {
  const Json json = parse(line);
  if (!json.is_object())
    return fail(Errc::corrupt, "not an answer of etcd: '" + printable(strip(line), 100) + "'");
  Etcd3WatchReply reply;
  if (!json.contains("result")) {
    reply.canceled = true;
    reply.reason = parse_etcd3_refusal(line).message;
    return reply;
  }
  const Json& result = get_object(json, "result");
  reply.revision = get_revision(get_object(result, "header"), "revision");
  reply.canceled = get_flag(result, "canceled");
  reply.compact_revision = get_revision(result, "compact_revision");
  reply.reason = get_text(result, "cancel_reason");
  for (const Json& item : get_list(result, "events")) {
    if (!item.is_object()) return fail(Errc::corrupt, "an event of the watch is not a JSON object");
    Etcd3Event event;
    event.deleted = get_text(item, "type") == "DELETE";
    LOCKSTEP_TRY_ASSIGN(event.kv, parse_kv(get_object(item, "kv")));
    reply.events.push_back(std::move(event));
  }
  return reply;
}

Etcd3Refusal parse_etcd3_refusal(std::string_view body) {
  Json json = parse(body);
  // Text from another program, for instance a proxy.
  if (!json.is_object()) return {0, printable(strip(body), 200)};
  // Streams nest the error in an object; calls have it at the top.
  if (json.contains("error") && json["error"].is_object()) json = Json(json["error"]);
  Etcd3Refusal refusal;
  const std::int64_t code = std::max(get_number(json, "code"), get_number(json, "grpc_code"));
  refusal.code = static_cast<int>(std::clamp<std::int64_t>(code, 0, 1000));
  // Some releases have only one of the two.
  for (const char* name : {"message", "error"}) {
    if (!refusal.message.empty()) break;
    refusal.message = printable(get_text(json, name), 200);
  }
  return refusal;
}

}  // namespace lockstep::rendezvous::etcd3
