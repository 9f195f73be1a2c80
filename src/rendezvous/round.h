// The agreement of the nodes of a job, as seen by one of them. Immutable.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::rendezvous {

struct Round {
  std::int64_t number = 0;       // counts every agreement of the rendezvous
  int restarts = 0;              // rounds caused by a failed worker
  int max_restarts = INT32_MAX;  // the lowest --max-restarts of the nodes, if all have told theirs
  int group_rank = 0;            // of this node
  int group_world_size = 1;
  int base_rank = 0;  // global rank of local rank 0
  int world_size = 1;
  int role_base_rank = 0;
  int role_world_size = 1;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;
  bool use_agent_store = true;  // workers are clients of the store at master_addr:master_port
  std::vector<std::string> notes = {};  // differences between the nodes, for messages
};

// Checks a round from another node: fails unless `workers` of this node have ranks in the round.
Status check_ranks(const Round& round, int workers);

}  // namespace lockstep::rendezvous
