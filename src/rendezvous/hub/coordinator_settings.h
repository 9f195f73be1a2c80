// The settings of the coordinator of the `lockstep` rendezvous, and the records that it asks its
// host to keep for a successor. Values.
#pragma once

#include "rendezvous/hub/hub_frames.h"
#include "rendezvous/rank_order.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::rendezvous::hub {

using Time = std::chrono::steady_clock::time_point;
using Ms = std::chrono::milliseconds;
using PeerId = std::uint64_t;  // names one connection; never reused

struct CoordinatorSettings {
  std::string run_id;
  Nonce host{};  // the agent running the coordinator
  std::size_t min_nodes = 1;
  std::size_t max_nodes = 1;
  Ms last_call{30'000};  // how long to wait for more nodes once there are enough
  Ms heartbeat{1'000};
  Ms dead{5'000};           // a node silent for this long is gone
  Ms return_grace{10'000};  // how long to wait for a node after Leave::returns
  Ms store_timeout{30'000};
  RankOrder order = RankOrder::host;
  // Host names of all nodes as the scheduler knows them; empty: unknown.
  std::vector<std::string> expected;
  // The state left by the previous coordinator, if this one has taken over. The workers of its
  // nodes run, or stand still, until they come over. So stragglers get only takeover_grace.
  std::int64_t first_round = 0;
  int restarts = 0;
  bool takeover = false;
  Ms takeover_grace{1'000};
  int last_lead = -1;              // rank of the node that ran the previous coordinator
  std::string last_lead_called;    // name of that node, for messages; empty: unknown
  std::vector<int> last_finished;  // ranks that had finished and need not come over
  // Set if another coordinator may take over unnoticed. Two rounds with the same number would be
  // two jobs, so a fenced coordinator places a round only after permit().
  bool fenced = false;
};

// A request to place a round, or only to record the state of the current round for a successor.
struct PermitRequest {
  enum class End { none, succeeded, failed };
  std::int64_t round = 0;
  int restarts = 0;
  int lead = -1;  // rank of the coordinator's own node
  // Ranks that have finished and may be gone when another coordinator takes over.
  std::vector<int> finished;
  End end = End::none;  // end of the job
  std::string why = {};
};

}  // namespace lockstep::rendezvous::hub
