// Whether the nodes of a job are fit for it, before its ranks start: what each node has found out
// about itself and its way to the others, and what follows from that for all of them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

// A folder that the job writes to.
struct FolderFacts {
  std::string path = {};
  std::string trouble = {};    // why nothing can be written there; empty: it can
  std::int64_t free_mib = -1;  // -1: not known
  std::int64_t total_mib = -1;
};

// What the Python of the ranks says. It is asked only where the ranks run one, and not by a quick
// pre-flight.
struct PythonAnswer {
  bool asked = false;
  bool finished = false;  // false: it still worked when its time was over
  std::string path = {};
  std::string version = {};              // "3.11.2"; empty: it has not started
  std::string torch = {};                // its version; empty: not installed
  std::string trouble = {};              // why it, or PyTorch, does not load
  int gpus = -1;                         // that a PyTorch for GPUs can use; -1: it is none
  std::vector<std::string> broken = {};  // "name: error" of modules that do not load
};

// A node that could not be reached.
struct Unreached {
  enum class How {
    cut,      // nothing came back, or there is no way to it
    refused,  // its machine answered, and nobody listens there
    other,    // another program answered
  };
  int node = 0;  // its place in the list
  std::string why = {};
  How how = How::cut;
};

struct NodeFacts {
  std::int64_t clock_ms = 0;    // Unix time there, when it was told
  std::int64_t arrived_ms = 0;  // Unix time of the node that was told
  FolderFacts temp = {};
  FolderFacts job = {};
  FolderFacts shared_memory = {};
  int gpus_given = 0;                       // by Slurm
  int gpus_seen = 0;                        // whose device files can be opened
  std::vector<std::string> gpu_users = {};  // "pid 12 (python3)" on GPUs of the job
  std::int64_t memlock_kib = -1;            // -1: no limit
  bool fabric = false;                      // it has InfiniBand or the like
  std::string port_trouble = {};            // why it can't listen where the nodes meet
  PythonAnswer python = {};
  std::vector<Unreached> unreached = {};
};

enum class NodeWeight {
  note,   // told, and nothing more
  doubt,  // the node is left out where a spare is there
  bad,    // the job can't run with it
};

struct NodeFinding {
  NodeWeight weight = NodeWeight::note;
  int node = 0;
  std::string text;
  std::string cure = {};
};

// facts: of each node, in the order of the list; nullopt: it has said nothing.
using AllFacts = std::vector<std::optional<NodeFacts>>;
std::vector<NodeFinding> node_findings(const std::vector<std::string>& nodes,
                                       const AllFacts& facts);

struct NodeCounts {
  int wanted = 1;    // nodes that train
  int at_least = 1;  // with --min-nodes it may go on with so few
};

struct LeftOut {
  std::string node;
  std::string why;
  bool bad = true;  // false: a doubt
};

// What all nodes do.
struct PreflightDecision {
  bool ends = false;                    // too few nodes are fit for it
  std::vector<LeftOut> left_out = {};   // where it ends: the bad nodes
  std::vector<std::string> lines = {};  // for people
};
PreflightDecision decide(const std::vector<std::string>& nodes, const AllFacts& facts,
                         const NodeCounts& size);

// The nodes that node `self` of `count` tries to reach. Up to kAllPairs all others. Above that
// those 1, 2, 4, 8 ... places on, and the deciders: each node then tries, and is tried by, about
// log2 of the count. A node that is cut off from all others fails with each of these, and as the
// pairs connect all nodes with each other, so does some pair wherever the nodes fall into two
// parts. What is missed is a single pair of nodes that do not reach each other while they reach all
// the rest.
inline constexpr int kAllPairs = 32;
std::vector<int> peers_of(int self, int count);

// Those that may decide, the first one first.
inline constexpr int kDeciders = 3;
// Whether a node that has heard `told` of `count` nodes, itself among them, may decide when its
// time has come: whoever is cut off from most of them may not.
bool may_decide(int self, int told, int count);

// What `lockstep run` is told in its words of the job's size; all of `nodes` where it is not.
NodeCounts size_in(const std::vector<std::string>& words, int nodes);
// Its words where some of the nodes do not take part: they count for nothing, and the rest meets at
// the first of the rest. port: where they meet.
std::vector<std::string> words_without(const std::vector<std::string>& words,
                                       const std::vector<std::string>& nodes,
                                       const PreflightDecision& decision, int port);

}  // namespace lockstep::slurm
