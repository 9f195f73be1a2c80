// The state of torchrun's older etcd rendezvous (--rdzv-backend etcd) at rdzv/active_version, as a
// value and as JSON.
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
  // A Lockstep agent's attributes. torchrun's agents carry them along unread.
  struct Agent {
    std::string host;
    std::string id;  // unique for each agent
    bool operator==(const Agent&) const = default;
  };

  Status status = Status::setup;
  std::string version;                        // number of the round as text; setup: empty
  std::size_t participants = 0;               // ranks 0, 1, ...
  std::vector<std::string> keep_alives = {};  // lease keys of the nodes that have confirmed
  std::size_t waiting = 0;  // count of nodes that announced themselves; never decreases
  std::map<std::size_t, Agent> agents = {};  // by rank
  std::string rest = "{}";                   // JSON of unknown attributes

  bool all_ours() const { return agents.size() == participants; }
  bool operator==(const LegacyState&) const = default;
};

Result<LegacyState> decode_legacy_state(std::string_view json);
std::string encode_legacy_state(const LegacyState& state);

}  // namespace lockstep::rendezvous::etcd
