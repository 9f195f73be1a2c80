// The exchange after a round is complete. Every agent tells its number of workers. Rank 0 answers
// with the global ranks and with the place of the workers' store. Keys and texts are those of
// PyTorch 2.x, under the round's prefix. Pure functions first, then the driver.
#pragma once

#include "base/error.h"
#include "rendezvous/backend.h"
#include "rendezvous/key_value.h"
#include "rendezvous/round_result.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rendezvous {

struct RoleInfo {
  std::string role = "default";
  std::int64_t rank = 0;  // of the node
  std::int64_t local_world_size = 1;
  // Lockstep's, unread by torchrun: restarts used up by the job, as known to this agent.
  std::optional<int> restarts = {};
  std::string nodes_asked = {};  // --nnodes; empty: unknown
  std::optional<int> max_restarts = {};
  Launched launched = {};
  std::string host = {};  // the node's name for messages
  bool operator==(const RoleInfo&) const = default;
};
std::string encode_role_info(const RoleInfo& info);
Result<RoleInfo> decode_role_info(std::string_view json);

struct AssignedRanks {
  std::int64_t base_rank = 0;  // global rank of local rank 0
  std::int64_t world_size = 1;
  std::int64_t role_base_rank = 0;
  std::int64_t role_world_size = 1;
  bool operator==(const AssignedRanks&) const = default;
};
std::string encode_assigned_ranks(const AssignedRanks& ranks);
Result<AssignedRanks> decode_assigned_ranks(std::string_view json);

// Returns the ranks by node. Fails if the job has more workers than rank numbers: the nodes' claims
// are not trusted.
Result<std::vector<AssignedRanks>> assign_ranks(std::span<const RoleInfo> infos);

struct Assignment {
  StorePlace workers;
  AssignedRanks ranks;
  int restarts = 0;              // the highest count known to any agent
  int max_restarts = INT32_MAX;  // the lowest, if all agents are Lockstep's and tell it
  std::vector<bool> ours;        // by rank: the node has a Lockstep agent, according to rank 0
  std::vector<std::string> notes = {};  // differences between the nodes, for messages
  // Rank 0 only, by rank: the nodes' --nnodes and names.
  std::vector<std::string> nodes_asked = {};
  std::vector<std::string> hosts = {};
};

// Compares a late node's program with the round at `prefix`, if there is such a round. Calls back
// with an error that names both programs if they differ.
void compare_with_round(KeyValue& keys, const std::string& prefix, const RoleInfo& own,
                        const std::string& run_id, std::function<void(Status)> done);
// Logs on rank 0 which nodes were turned away by compare_with_round().
std::unique_ptr<KeyValue::Watch> watch_turned_away(KeyValue& keys, const std::string& prefix);

struct RankExchange {
  RoundResult round;
  std::string run_id = {};                     // for messages
  RoleInfo own;                                // `rank` is taken from the round
  std::optional<StorePlace> offered;           // rank 0: its store; other nodes: nothing
  std::optional<StorePlace> known_store = {};  // static: no node needs to be told
  std::function<void()> all_are_there =
      nullptr;  // of rank 0: before the others hear of their ranks
  // Returns the prefix of an earlier round: a torchrun agent publishes its store only in its first
  // round.
  std::function<std::string(std::int64_t)> prefix_of = nullptr;
  std::chrono::milliseconds timeout{60'000};
};
// Exchanges ranks. Writes everything from this agent before waiting for another one, or two agents
// could wait for each other. `done` runs once, unless the store is destroyed before.
void exchange_ranks(KeyValue& keys, RankExchange exchange,
                    std::function<void(Result<Assignment>)> done);

}  // namespace lockstep::rendezvous
