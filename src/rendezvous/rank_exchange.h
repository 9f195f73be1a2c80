// After a round is complete: its agents tell one another how many workers each has, rank 0 says
// which global ranks that makes, and where the workers' store is. Keys and texts are those of
// PyTorch 2.x, under the round's prefix. Pure steps first, then the driver.
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
  // Ours, unread by torchrun: restarts that the job has used up, as far as this agent knows.
  std::optional<int> restarts = {};
  std::string nodes_asked = {};  // --nnodes; empty: unknown
  std::optional<int> max_restarts = {};
  Launched launched = {};
  std::string host = {};  // the node's name for people
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

// By node rank. Fails where the workers are more than ranks are numbers for: what the nodes say of
// themselves is theirs.
Result<std::vector<AssignedRanks>> assign_ranks(std::span<const RoleInfo> infos);

struct Assignment {
  StorePlace workers;
  AssignedRanks ranks;
  int restarts = 0;                     // the most that any of the agents knows of
  int max_restarts = INT32_MAX;         // the lowest, where all are Lockstep's and say it
  std::vector<bool> ours;               // by rank: the node has a Lockstep agent, as rank 0 knows
  std::vector<std::string> notes = {};  // what the nodes differ in, for people
  // Rank 0 only, by rank: what they were started with, and are called.
  std::vector<std::string> nodes_asked = {};
  std::vector<std::string> hosts = {};
};

// What a node launches is compared with what the round of that prefix does, if there is one: for
// one that comes later. Calls back with the error that says who launches what.
void compare_with_round(KeyValue& keys, const std::string& prefix, const RoleInfo& own,
                        const std::string& run_id, std::function<void(Status)> done);
// Rank 0 hears of those who were turned away so.
std::unique_ptr<KeyValue::Watch> watch_turned_away(KeyValue& keys, const std::string& prefix);

struct RankExchange {
  RoundResult round;
  std::string run_id = {};                     // for messages
  RoleInfo own;                                // its rank is the round's
  std::optional<StorePlace> offered;           // by rank 0: its own; others: nothing
  std::optional<StorePlace> known_store = {};  // static: nobody needs to be told
  std::function<void()> all_are_there =
      nullptr;  // of rank 0: before the others hear of their ranks
  // The prefix of an earlier round: a torchrun agent says where its store is only in its first one.
  std::function<std::string(std::int64_t)> prefix_of = nullptr;
  std::chrono::milliseconds timeout{60'000};
};
// Writes all that this agent has to say before it waits for anybody. `done` comes once, unless the
// store is destroyed before.
void exchange_ranks(KeyValue& keys, RankExchange exchange,
                    std::function<void(Result<Assignment>)> done);

}  // namespace lockstep::rendezvous
