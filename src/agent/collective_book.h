// What the flight recorders of this node's ranks have said while the job stands still, and those of
// other nodes, if this node judges all ranks. Pure.
#pragma once

#include "agent/dump_request.h"
#include "io/loop.h"
#include "looks/evidence.h"
#include "looks/fold.h"
#include "recorder/summary.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::agent {

class CollectiveBook {
 public:
  // Takes the answers to one request. world: ranks of the job. unix_ns: the wall clock, which the
  // recorders' times are compared with.
  void take(const DumpRequest::Answers& answers, int world, std::int64_t unix_ns,
            io::TimePoint now);
  // Takes what other nodes say now, by their numbers. world: ranks of the job.
  void hear(std::map<int, recorder::Summary> others, int world);
  // Forgets the answers of this node once a rank of it has moved that was inside a collective:
  // others may have come. Other nodes do so for themselves.
  void heed(const looks::Fold& fold, io::TimePoint now);
  void forget();

  bool knows() const { return answered_ != io::TimePoint(); }
  void add_to(looks::Evidence& evidence) const;
  // Returns recorder::summary_json() of this node, for the leader. "": the recorders say nothing.
  const std::string& told() const { return told_; }

 private:
  void conclude();
  std::map<int, looks::Millis> inside() const;

  struct Rank {
    std::uint64_t mark = 0;
    bool inside = false;
    io::TimePoint since = {};  // of the first answer with this mark
    bool twice = false;        // a later answer had the same mark
    looks::Millis age = {};    // of the last collective that began or ended, at the last answer
  };

  std::map<int, Rank> ranks_;
  recorder::Summary own_;
  std::map<int, recorder::Summary> others_;
  std::string told_;
  int world_ = 0;
  looks::Evidence alone_;     // of this node's recorders, without `inside`
  looks::Evidence evidence_;  // of all known recorders, without `inside`
  io::TimePoint answered_ = {};
};

// Decides when to ask: first after half of the time after which a job counts as hung, and less
// often in a job that stands still for long.
class AskClock {
 public:
  // standing: for so long a rank has kept its stack. limit: 0: never.
  bool is_due(looks::Millis standing, looks::Millis limit);
  void reset() { asked_ = 0; }

 private:
  int asked_ = 0;
  looks::Millis next_ = {};
};

}  // namespace lockstep::agent
