// The agreed outcome of one rendezvous, as one node sees it. Immutable.
#pragma once

#include <string>

namespace lockstep::agent {

struct Round {
  int number = 0;
  int group_rank = 0;
  int group_world_size = 1;
  int base_rank = 0;  // global rank of local rank 0
  int world_size = 1;
  int role_base_rank = 0;
  int role_world_size = 1;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;
  bool use_agent_store = true;  // workers are clients of the store at master_addr:master_port
};

// One node alone has all the ranks.
Round single_node_round(int number, int nproc, std::string master_addr, int master_port);

}  // namespace lockstep::agent
