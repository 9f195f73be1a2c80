// What Slurm calls the state of a job: a base state (RUNNING), and flags that Slurm prints in its
// place for as long as they are set (COMPLETING, SIGNALING, ...). A state that no release had when
// this was written is kept as text; it is no error.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::slurm {

enum class JobPhase {
  waiting,  // it holds no nodes: PENDING, REQUEUE_HOLD, ...
  running,  // it holds nodes: RUNNING, CONFIGURING, SIGNALING, SUSPENDED, ...
  ending,   // its programs end or have ended, but it still has nodes: COMPLETING, STAGE_OUT
  ended,    // it will not run again by itself: COMPLETED, FAILED, ...
  unknown,  // a state that this file does not know: ask again later
};

struct JobState {
  std::string name;               // in full, as Slurm has it: "OUT_OF_MEMORY"
  std::string cancelled_by = {};  // only sacct tells: a user id, or a name
  JobPhase phase = JobPhase::unknown;

  bool ended() const { return phase == JobPhase::ended; }
  bool completed() const { return name == "COMPLETED"; }
  bool operator==(const JobState&) const = default;
};

// "RUNNING", "CANCELLED by 1000", "COMPLETI+", "DOWN*", "RUNNING+SIGNALING", "PENDING,REQUEUED".
JobState parse_job_state(std::string_view text);

}  // namespace lockstep::slurm
