// Decides whether the nodes of a job are fit before the ranks start. Input: each node's facts about
// itself and about the way to other nodes. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

// A folder that the job writes to.
struct FolderFacts {
  std::string path = {};
  std::string trouble = {};    // why a test write failed; empty: writable
  std::int64_t free_mib = -1;  // -1: unknown
  std::int64_t total_mib = -1;
};

// Answers of the ranks' Python. Asked only where the ranks run Python, and not in a quick
// pre-flight.
struct PythonAnswer {
  bool asked = false;
  bool finished = false;  // false: Python was still importing at the deadline
  std::string path = {};
  std::string version = {};              // "3.11.2"; empty: Python did not start
  std::string torch = {};                // PyTorch's version; empty: not installed
  std::string trouble = {};              // why Python or PyTorch does not load
  int gpus = -1;                         // GPUs usable by PyTorch; -1: not a PyTorch for GPUs
  std::vector<std::string> broken = {};  // modules that do not load, as "name: error"
};

// A node that another node could not reach.
struct Unreached {
  enum class How {
    cut,      // no answer, or no route
    refused,  // the machine answered, but no process listens there
    other,    // another program answered
  };
  int node = 0;  // index in the list of nodes
  std::string why = {};
  How how = How::cut;
};

struct NodeFacts {
  std::int64_t clock_ms = 0;    // Unix time on the node when the facts were sent
  std::int64_t arrived_ms = 0;  // the receiving node's Unix time
  FolderFacts temp = {};
  FolderFacts job = {};
  FolderFacts shared_memory = {};
  int gpus_given = 0;                       // GPUs that Slurm gave the step
  int gpus_seen = 0;                        // GPUs whose device files can be opened
  std::vector<std::string> gpu_users = {};  // processes on the job's GPUs: "pid 12"
  std::int64_t memlock_kib = -1;            // -1: no limit
  bool fabric = false;                      // has InfiniBand or the like
  std::string port_trouble = {};            // why the node cannot listen on the rendezvous port
  std::string image_trouble = {};           // why the node cannot start the job's container
  PythonAnswer python = {};
  std::vector<Unreached> unreached = {};
};

enum class NodeWeight {
  note,   // printed only
  doubt,  // exclude the node if a spare can replace it
  bad,    // the job cannot run with the node
};

struct NodeFinding {
  NodeWeight weight = NodeWeight::note;
  int node = 0;
  std::string text;
  std::string cure = {};
};

// Returns the findings about all nodes. facts: in the order of `nodes`; nullopt: the node sent
// nothing.
using AllFacts = std::vector<std::optional<NodeFacts>>;
std::vector<NodeFinding> node_findings(const std::vector<std::string>& nodes,
                                       const AllFacts& facts);

struct NodeCounts {
  int wanted = 1;    // nodes that train
  int at_least = 1;  // fewest nodes with --min-nodes
};

struct LeftOut {
  std::string node;
  std::string why;
  bool bad = true;  // false: NodeWeight::doubt
};

// The decision that all nodes carry out.
struct PreflightDecision {
  bool ends = false;                    // end the job: too few nodes are fit
  std::vector<LeftOut> left_out = {};   // excluded nodes; if `ends`: the bad nodes
  std::vector<std::string> lines = {};  // for people
};
// Decides. Excludes bad nodes always, and doubtful ones while more than `size.wanted` are left.
PreflightDecision decide(const std::vector<std::string>& nodes, const AllFacts& facts,
                         const NodeCounts& size);

// Returns the nodes that node `self` of `count` tries to reach. Up to kAllPairs nodes: all others.
// Above: the nodes 1, 2, 4, 8, ... places on, and the deciders, so each node makes and gets about
// log2(count) connections. A node cut off from all others fails with each of its peers. Where the
// network falls into two parts, some pair fails too, because the pairs connect all nodes with each
// other. Only a single broken pair between two otherwise reachable nodes can be missed.
inline constexpr int kAllPairs = 32;
std::vector<int> peers_of(int self, int count);

// How many nodes may decide, from the first node on.
inline constexpr int kDeciders = 3;
// Returns whether node `self` may decide when its turn comes. told: how many of `count` nodes it
// has facts of, itself included. A node cut off from most others must not decide.
bool may_decide(int self, int told, int count);

// Returns the job's size in the words of `lockstep run`; all of `nodes` if the words have none.
NodeCounts size_in(const std::vector<std::string>& words, int nodes);
// Returns the same from the value of --nnodes.
NodeCounts size_of(std::string_view nnodes, int nodes);
// Returns the words for a run without the excluded nodes: sizes reduced, and the rendezvous at the
// first remaining node. port: where the nodes meet.
std::vector<std::string> words_without(const std::vector<std::string>& words,
                                       const std::vector<std::string>& nodes,
                                       const PreflightDecision& decision, int port);

}  // namespace lockstep::slurm
