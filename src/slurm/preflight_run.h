// The pre-flight of one node: it tries to reach the others, tells what it has found out to the
// nodes that may decide, and learns what was decided. The decision is a file in the job's folder
// that is made once, so all nodes find the same one whoever made it; connections only make it
// quick.
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
  std::vector<std::string> nodes;  // of the step, in its order
  int self = 0;                    // this one's place among them
  int port = 0;                    // where they meet
  std::string token;
  std::string job;   // with the step and the run: "12.0.r1"
  std::string file;  // of the decision
  NodeCounts size;
  std::function<NodeFacts()> look;  // at this node, while its Python works
  PythonQuestion ask;               // of the ranks' Python
  // When a node says what it knows by then, and when the first decider decides by what it has
  // heard.
  std::chrono::milliseconds tell_at{6'500};
  std::chrono::milliseconds decide_at{7'500};
  std::chrono::milliseconds next_decider{700};
};

class Preflight {
 public:
  Preflight(io::Loop& loop, PreflightSettings settings);
  Preflight(const Preflight&) = delete;
  Preflight& operator=(const Preflight&) = delete;

  // Runs the loop until all is decided. nullopt: nobody could decide, all go on.
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
  std::unique_ptr<io::Watch> accepting_;  // after listener_: goes first
  std::map<int, Peer> peers_;
  struct Guest {
    std::unique_ptr<PreflightStream> stream;
    int node = -1;  // -1: it has not said which one it is
  };
  std::map<int, Guest> guests_;  // by a number of their own
  int last_guest_ = 0;
  std::set<int> strangers_;         // of the guests, oldest first: they may be anybody
  std::size_t most_strangers_ = 0;  // half of the descriptors, so that they take none from the job
  std::optional<PythonProbe> python_;
  io::Timer tell_timer_;
  io::Timer turn_timer_;
  io::Timer end_timer_;
  CallbackScope calls_;
};

// Makes the file if it is not there yet, whole. The decision that it holds then.
Result<PreflightDecision> keep_first_decision(const std::string& file,
                                              const PreflightDecision& decision, bool& made);

}  // namespace lockstep::slurm
