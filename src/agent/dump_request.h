// Asks the workers of this node for dumps of their flight recorders: through NCCL's pipe, or else
// through the control plane that --aid starts. Waits for the files and answers on the event loop:
// never for longer than a limit, and never for a read or write of a pipe or socket.
#pragma once

#include "agent/control_plane.h"
#include "agent/recorder_folder.h"
#include "io/loop.h"
#include "recorder/dump.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace lockstep::agent {

class DumpRequest {
 public:
  struct Options {
    io::Duration limit = std::chrono::seconds(10);  // stacks in a dump take up to 7 s
    io::Duration pause = std::chrono::milliseconds(100);
    // For reading dumps within one turn of the loop.
    io::Duration budget = std::chrono::milliseconds(20);
    recorder::DumpLimits dump = {};
  };
  struct Answers {
    std::map<int, recorder::Dump> dumps = {};
    // The rank has a recorder, but has not answered: something holds the GIL, or it is stopped.
    std::vector<int> silent = {};
    std::vector<int> unreadable = {};  // the dump is cut off, too large, or no dump
    std::vector<int> without = {};     // no recorder to ask
  };
  using Done = std::function<void(Answers)>;

  explicit DumpRequest(io::Loop& loop) : DumpRequest(loop, Options()) {}
  DumpRequest(io::Loop& loop, const Options& options)
      : loop_(loop), options_(options), timer_(loop) {}

  // Replaces a request that is under way. done is called once, not from within this call.
  void start(const RecorderFolder& folder, const std::vector<int>& ranks, Done done);
  void cancel();
  bool running() const { return !pending_.empty(); }
  // Returns the ranks that have written a dump, or a part of one, since the last call.
  std::set<int> take_writers();

 private:
  struct Pending {
    std::optional<RecorderFolder::State> file = {};  // at the last look
    bool refused = false;                            // this state of the file is no dump
    std::unique_ptr<DumpCall> call = {};             // nullptr: the rank writes a file
  };

  void look();
  // Returns whether the rank has answered.
  bool take(int rank, Pending& pending);
  bool take_answer(int rank, const DumpCall& call);

  io::Loop& loop_;
  Options options_;
  io::Timer timer_;
  std::optional<RecorderFolder> folder_;
  io::TimePoint end_;
  std::map<int, Pending> pending_;
  std::set<int> writers_;  // since the last take_writers()
  Answers answers_;
  Done done_;
};

}  // namespace lockstep::agent
