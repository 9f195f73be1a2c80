// etcd's v2 keys API as bytes: targets, forms, replies. Pure.
#pragma once

#include "base/error.h"
#include "http/client.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::etcd {

// "/v2/keys/..." of a key that begins with "/"; what can't stand in a URL is coded.
std::string v2_target(std::string_view key);

// A PUT of the key, with an urlencoded form.
using V2Form = std::vector<std::pair<std::string, std::string>>;
http::Call v2_put(std::string_view key, const V2Form& form);
// query: "wait=true&waitIndex=7"
http::Call v2_get(std::string_view key, std::string_view query);

// errorCode of a reply.
inline constexpr int kV2NoKey = 100;
inline constexpr int kV2CompareFailed = 101;
inline constexpr int kV2Exists = 105;
inline constexpr int kV2IndexCleared = 401;

struct V2Reply {
  int error = 0;            // errorCode; 0: it was done
  std::uint64_t index = 0;  // etcd's, when it answered
  std::string value;        // of the node
  std::uint64_t modified = 0;
  bool gone = false;  // of a poll: the key was deleted or ran out
};

// An Error where it is no reply that the API makes, or one that no caller here expects.
Result<V2Reply> parse_v2_reply(const http::Answer& answer);

}  // namespace lockstep::rendezvous::etcd
