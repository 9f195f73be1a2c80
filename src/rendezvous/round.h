// What the nodes of a job have agreed on, as one of them sees it. Immutable.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::rendezvous {

struct Round {
  std::int64_t number = 0;       // of the rendezvous: counts every new agreement
  int restarts = 0;              // of them, those that were made because a worker had failed
  int max_restarts = INT32_MAX;  // the lowest --max-restarts of its nodes, where all have said it
  int group_rank = 0;            // of this node
  int group_world_size = 1;
  int base_rank = 0;  // global rank of local rank 0
  int world_size = 1;
  int role_base_rank = 0;
  int role_world_size = 1;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;
  bool use_agent_store = true;  // workers are clients of the store at master_addr:master_port
  std::vector<std::string> notes = {};  // differences between its nodes, for people
};

// Another node has made it: whether `workers` of this one have ranks in it.
Status check_ranks(const Round& round, int workers);

}  // namespace lockstep::rendezvous
