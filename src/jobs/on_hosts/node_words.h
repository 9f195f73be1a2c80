// The words that a job on hosts adds to each node's `lockstep run`: its ranks, where the nodes
// meet, and the tags of its lines. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::on_hosts {

// What the user decided for all nodes. A word of the user is never given a second time.
struct UserWords {
  bool workers = false;      // --nproc-per-node or --slots
  bool one_worker = false;   // --nproc-per-node=1
  bool nodes = false;        // --nnodes
  bool run_id = false;       // --rdzv-id
  bool backend = false;      // --rdzv-backend
  bool meeting = false;      // where the nodes meet: --rdzv-endpoint, --master-addr, --standalone
  bool line_form = false;    // --tee, --redirects or a prefix of lines
  bool tails = false;        // --report-tails
  bool replacement = false;  // --no-replacement
};

struct NodeFacts {
  std::optional<int> workers = {};  // from the user's hostfile; nullopt: one, as torchrun's default
  std::string slots = {};           // value of --slots, "0,1"; empty: none
};

struct WordsRequest {
  std::vector<NodeFacts> nodes = {};
  std::string job = {};     // its id
  std::string run_id = {};  // the same for all attempts of a job on rented machines; or empty
  bool needs_endpoint = false;
  // Rented machines are replaced all together, by the course of their job.
  bool rented = false;
};

// Returns the words of each node.
std::vector<std::vector<std::string>> words_of_nodes(const WordsRequest& request,
                                                     const UserWords& given);

}  // namespace lockstep::jobs::on_hosts
