// The events of a job, wherever it runs, as one list.
#pragma once

#include "base/error.h"
#include "jobs/job.h"
#include "status/event_ring.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs {

// Reads the events of all agents of a job, each event once.
class EventReader {
 public:
  // Waits between two questions. canceled: a signal came, whose number is Error::sys.
  using Pause = std::function<Status(std::chrono::milliseconds)>;

  explicit EventReader(Job& job, Pause pause = pause_here) : job_(job), pause_(std::move(pause)) {}

  // Returns the events that are new since the last call, the oldest first. These may be a part: if
  // the job needs a pause between two questions, or if no host answers a later question. The caller
  // pauses and calls again.
  Result<std::vector<status::JobEvent>> next();
  // Returns all new events, and pauses between the questions where the job needs that. After an
  // error the next call returns what was read.
  Result<std::vector<status::JobEvent>> all();
  // Returns whether an agent or a report answered in the last call.
  bool answered() const { return answered_; }
  // Returns whether all agents that answered in the last call have seen the job's end.
  bool ended() const { return ended_; }

 private:
  // An agent keeps 4 MB of events and answers with a fourth of it. New agents need more questions.
  static constexpr int kMostQuestions = 100;

  static Status pause_here(std::chrono::milliseconds time);
  bool needs_pause() const { return job_.pause() > std::chrono::seconds(0); }
  // Asks until read_ has everything that is new.
  Status ask(int questions);
  // Takes what is new. Returns false if there is more to ask for at once.
  bool take(std::vector<status::EventAnswer> answers);
  std::vector<status::JobEvent> sorted();  // and empties read_

  Job& job_;
  Pause pause_;
  std::vector<status::JobEvent> read_;        // not returned yet
  std::map<std::string, std::int64_t> last_;  // number of the last event, by agent
  std::map<std::string, bool> over_;          // by agent
  std::int64_t after_ = 0;
  bool answered_ = false;
  bool ended_ = false;
};

}  // namespace lockstep::jobs
