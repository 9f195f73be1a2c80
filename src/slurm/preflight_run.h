// The pre-flight of one node. Tries to reach the other nodes, sends its facts to the nodes that may
// decide, and waits for the decision. The decision is a file in the job's folder that is created
// once, so all nodes obey the same decision whichever node made it. The connections only save time.
#pragma once

#include "base/error.h"
#include "io/dialer.h"
#include "io/fd.h"
#include "io/loop.h"
#include "slurm/preflight.h"
#include "slurm/preflight_stream.h"
#include "slurm/python_probe.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::slurm {

struct PreflightSettings {
  std::vector<std::string> nodes;  // nodes of the step, in Slurm's order
  int self = 0;                    // this node's index
  int port = 0;                    // of the rendezvous
  std::string token;
  std::string job;   // with step and run: "12.0.r1"
  std::string file;  // path of the decision
  NodeCounts size;
  std::function<NodeFacts()> look;  // collects this node's facts while its Python works
  PythonQuestion ask;               // question for the ranks' Python
  // Times since the start of run(). tell_at: a node sends what it knows by then. decide_at: the
  // first decider decides with what it has received. next_decider: delay of each further decider.
  std::chrono::milliseconds tell_at{6'500};
  std::chrono::milliseconds decide_at{7'500};
  std::chrono::milliseconds next_decider{700};
};

class Preflight {
 public:
  Preflight(io::Loop& loop, PreflightSettings settings);
  Preflight(const Preflight&) = delete;
  Preflight& operator=(const Preflight&) = delete;

  // Runs the loop until a decision is there. nullopt: no node could decide, and all nodes go on.
  std::optional<PreflightDecision> run();
  bool decided_here() const { return decided_here_; }

 private:
  struct Peer {
    std::unique_ptr<io::Dialer> dialer;
    std::unique_ptr<PreflightStream> stream;
    bool reached = false;
    Unreached failure;
  };

  void open();
  void look();
  void start_timers(std::chrono::milliseconds spent);
  void dial(int node);
  void greet(int node, io::Fd fd);
  void on_peer(int node, PreflightKind kind, std::string_view body);
  void lost_peer(int node, const Error& error);
  void accept();
  bool send_stranger_away();
  void on_guest(int id, PreflightKind kind, std::string_view body);
  void maybe_tell();
  void tell();
  void take_facts(int node, std::string_view body);
  void on_turn();
  void give_up();
  void decide_now();
  void settle(const PreflightDecision& decision);
  bool read_decision();

  io::Loop& loop_;
  PreflightSettings settings_;
  NodeFacts facts_;  // of this node
  AllFacts told_;
  std::optional<PreflightDecision> decision_;
  bool done_ = false;
  bool has_told_ = false;
  bool decided_here_ = false;
  io::Fd listener_;
  std::unique_ptr<io::Watch> accepting_;  // declared after listener_: destroyed first
  std::map<int, Peer> peers_;
  struct Guest {
    std::unique_ptr<PreflightStream> stream;
    int node = -1;  // -1: has not said which node it is
  };
  std::map<int, Guest> guests_;  // by a serial number
  int last_guest_ = 0;
  std::set<int> strangers_;         // guests without a name yet, oldest first; possibly strangers
  std::size_t most_strangers_ = 0;  // half of the open-file limit
  std::optional<PythonProbe> python_;
  io::Timer tell_timer_;
  io::Timer turn_timer_;
  io::Timer end_timer_;
  CallbackScope calls_;
};

// Creates the decision file atomically unless it exists, and returns the decision in the file.
// made: set to true if this call created the file.
Result<PreflightDecision> keep_first_decision(const std::string& file,
                                              const PreflightDecision& decision, bool& made);

}  // namespace lockstep::slurm
