// Printing and parsing of the v2 API.
#include "rendezvous/etcd/etcd_v2_codec.h"

#include "base/text.h"
#include "codec/url.h"
#include "rendezvous/etcd/etcd_json.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::rendezvous::etcd {
namespace {

using Json = nlohmann::json;

std::uint64_t number(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

std::string text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Failure not_etcd(const http::Answer& answer) {
  // etcd 3.4 and later answer a v2 path with a plain 404.
  const bool closed = answer.head.status == 404;
  return fail(closed ? Errc::not_found : Errc::corrupt,
              fmt::format("HTTP {} and not a v2 reply: '{}'", answer.head.status,
                          printable(strip(answer.body), 100)),
              closed ? "etcd 3.4 and later speak v2 only with --enable-v2" : "");
}

}  // namespace

std::string v2_target(std::string_view key) {
  // Slashes stay: they separate folders.
  return "/v2/keys" + codec::percent_code(key, "-._~/+=:@!$&'()*,;");
}

http::Call v2_put(std::string_view key, const V2Form& form) {
  http::Call call;
  call.method = "PUT";
  call.target = v2_target(key);
  call.fields = {{"Content-Type", "application/x-www-form-urlencoded"}};
  for (const auto& [name, value] : form) {
    if (!call.body.empty()) call.body += '&';
    call.body += name;
    call.body += '=';
    call.body += codec::percent_code(value);
  }
  return call;
}

http::Call v2_get(std::string_view key, std::string_view query) {
  http::Call call;
  call.target = v2_target(key);
  if (!query.empty()) {
    call.target += '?';
    call.target += query;
  }
  return call;
}

Result<V2Reply> parse_v2_reply(const http::Answer& answer) {
  const Json json = codec::parse_json(answer.body, kEtcdJson);
  if (!json.is_object()) return not_etcd(answer);
  V2Reply reply;
  reply.index = static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, parse_int(answer.head.field("x-etcd-index")).value_or(0)));
  reply.error = static_cast<int>(std::min<std::uint64_t>(number(json, "errorCode"), 1 << 20));
  if (reply.error != 0) {
    // An error reply also has the index in its body.
    reply.index = std::max(reply.index, number(json, "index"));
    const bool known = reply.error == kV2NoKey || reply.error == kV2CompareFailed ||
                       reply.error == kV2Exists || reply.error == kV2IndexCleared;
    if (known) return reply;
    return fail(
        answer.head.status == 401 || answer.head.status == 403 ? Errc::denied : Errc::unavailable,
        fmt::format("etcd refuses: {} ({}, code {})", printable(text(json, "message")),
                    printable(text(json, "cause")), reply.error));
  }
  const auto node = json.find("node");
  if (node == json.end() || !node->is_object()) return not_etcd(answer);
  reply.value = text(*node, "value");
  reply.modified = number(*node, "modifiedIndex");
  const std::string action = text(json, "action");
  // A poll ends for deletions, too.
  reply.gone = action == "delete" || action == "expire" || action == "compareAndDelete";
  return reply;
}

}  // namespace lockstep::rendezvous::etcd
