// What the older etcd rendezvous of torchrun (--rdzv-backend etcd) keeps at rdzv/active_version, as
// a value and as JSON.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rendezvous::etcd {

struct LegacyState {
  enum class Status { setup, joinable, frozen, final, closed };
  // What a Lockstep agent says of itself when it joins; torchrun's agents carry it along unread.
  struct Agent {
    std::string host;
    std::string id;  // no two agents have the same
    bool operator==(const Agent&) const = default;
  };

  Status status = Status::setup;
  std::string version;                        // of the round, in digits; setup: none
  std::size_t participants = 0;               // their ranks are 0, 1, ...
  std::vector<std::string> keep_alives = {};  // lease keys of those who have confirmed
  std::size_t waiting = 0;                    // nodes that want in; only ever counts up
  std::map<std::size_t, Agent> agents = {};   // by rank
  std::string rest = "{}";                    // JSON: attributes we don't know

  bool all_ours() const { return agents.size() == participants; }
  bool operator==(const LegacyState&) const = default;
};

Result<LegacyState> decode_legacy_state(std::string_view json);
std::string encode_legacy_state(const LegacyState& state);

}  // namespace lockstep::rendezvous::etcd
