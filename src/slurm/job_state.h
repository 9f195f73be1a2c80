// Slurm's job states: a base state (RUNNING), and flags that Slurm prints in its place while they
// are set (COMPLETING, SIGNALING, ...). An unknown state, for example of a later release, is kept
// as text and is not an error.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::slurm {

enum class JobPhase {
  waiting,  // holds no nodes: PENDING, REQUEUE_HOLD, ...
  running,  // holds nodes: RUNNING, CONFIGURING, SIGNALING, SUSPENDED, ...
  ending,   // programs end or have ended, nodes are still held: COMPLETING, STAGE_OUT
  ended,    // will not run again by itself: COMPLETED, FAILED, ...
  unknown,  // a state unknown here: ask again later
};

struct SlurmState {
  std::string name;               // full name as Slurm has it: "OUT_OF_MEMORY"
  std::string cancelled_by = {};  // user id or name; only sacct tells
  JobPhase phase = JobPhase::unknown;

  bool ended() const { return phase == JobPhase::ended; }
  bool completed() const { return name == "COMPLETED"; }
  bool cancelled() const { return name == "CANCELLED"; }
  bool operator==(const SlurmState&) const = default;
};

// Parses the state that squeue, scontrol, sacct or sinfo prints: "RUNNING", "CANCELLED by 1000",
// "COMPLETI+", "DOWN*", "RUNNING+SIGNALING", "PENDING,REQUEUED".
SlurmState parse_job_state(std::string_view text);

}  // namespace lockstep::slurm
