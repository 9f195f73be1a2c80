// The events of a job, wherever it runs, as one list.
#pragma once

#include "base/error.h"
#include "jobs/job.h"
#include "status/event_ring.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::jobs {

// Reads the events of all agents of a job, each event once.
class EventReader {
 public:
  explicit EventReader(Job& job) : job_(job) {}

  // Returns the events that are new since the last call, the oldest first.
  Result<std::vector<status::JobEvent>> next();
  // Returns whether an agent or a report answered in the last call.
  bool answered() const { return answered_; }
  // Returns whether all agents that answered in the last call have seen the job's end.
  bool ended() const { return ended_; }

 private:
  // Takes what is new. Returns false if there is more to ask for at once.
  bool take(std::vector<status::EventAnswer> answers, std::vector<status::JobEvent>& events);

  Job& job_;
  std::map<std::string, std::int64_t> last_;  // number of the last event, by agent
  std::map<std::string, bool> over_;          // by agent
  std::int64_t after_ = 0;
  bool answered_ = false;
  bool ended_ = false;
};

}  // namespace lockstep::jobs
