// The bytes of etcd's v2 keys API: targets, forms, replies. Pure.
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

// Returns "/v2/keys/..." for a key that begins with "/". Characters not allowed in a URL are coded.
std::string v2_target(std::string_view key);

// Returns a PUT of the key with an urlencoded form.
using V2Form = std::vector<std::pair<std::string, std::string>>;
http::Call v2_put(std::string_view key, const V2Form& form);
// query: "wait=true&waitIndex=7"
http::Call v2_get(std::string_view key, std::string_view query);

// errorCode values of a reply.
inline constexpr int kV2NoKey = 100;
inline constexpr int kV2CompareFailed = 101;
inline constexpr int kV2Exists = 105;
inline constexpr int kV2IndexCleared = 401;

struct V2Reply {
  int error = 0;            // errorCode; 0: success
  std::uint64_t index = 0;  // etcd's index at the time of the answer
  std::string value;        // of the node
  std::uint64_t modified = 0;
  bool gone = false;  // poll: the key was deleted or has expired
};

// Parses a reply. Fails if the answer does not come from the API, or has an unexpected errorCode.
Result<V2Reply> parse_v2_reply(const http::Answer& answer);

}  // namespace lockstep::rendezvous::etcd
