// Knows which collective the ranks of this node are in: asks their flight recorders once the job
// stands still, or when a user wants to know.
#pragma once

#include "agent/collective_book.h"
#include "agent/dump_request.h"
#include "agent/recorder_folder.h"
#include "io/loop.h"
#include "looks/evidence.h"
#include "looks/fold.h"
#include "looks/world_looks.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace lockstep::agent {

class Collectives {
 public:
  explicit Collectives(io::Loop& loop) : request_(loop) {}

  // folder: nullopt: the workers are not asked. world: ranks of the job.
  void attempt_started(std::optional<RecorderFolder> folder, int world);
  void attempt_ends();

  // Call at each look. limit: after so long a quiet job counts as hung; 0: never.
  void heed(const looks::Fold& fold, looks::Millis limit, io::TimePoint now);
  // Asks for the sake of a user, if a rank has kept its stack for some seconds. Does nothing while
  // a request is under way, or if the last answer is younger than that.
  void ask(const looks::Fold& fold);
  // Asks at once, unless a request is under way: the workers may end soon.
  void ask_now(const looks::Fold& fold);
  bool asking() const { return request_.running(); }
  // Returns whether the recorders of this node have answered in this stand.
  bool knows() const { return book_.knows(); }
  // Returns the ranks that have written a dump for this agent since the last call.
  std::set<int> take_writers() { return request_.take_writers(); }

  // Takes what the recorders of other nodes say now. Call at each look, if this node judges all.
  void hear(const std::map<int, looks::WorldLooks::Recorders>& others);
  // Returns the news of this node's recorders for the leader.
  const std::string& told() const { return book_.told(); }
  void add_to(looks::Evidence& evidence) const { book_.add_to(evidence); }
  // Keeps the last dumps as evidence of a hang. Returns their prefix: the rank follows. "": none.
  std::string keep(int hang) const;

 private:
  void request(const looks::Fold& fold);

  DumpRequest request_;
  CollectiveBook book_;
  AskClock clock_;
  // What another node has told.
  struct Told {
    std::int64_t number = 0;
    std::string text = {};
    recorder::Summary summary = {};
  };

  std::map<int, Told> others_;  // by node
  std::optional<RecorderFolder> folder_;
  int world_ = 0;
  io::TimePoint answered_ = {};
};

}  // namespace lockstep::agent
