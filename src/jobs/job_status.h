// The state of a job, in the words shown to a person. Combines the hosts' records into one state.
// Pure.
#pragma once

#include "base/error.h"
#include "job/job_spec.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs {

enum class JobState {
  queued,      // waits for other jobs, or in Slurm's queue
  starting,    // its hosts are being prepared
  running,     // ranks run on at least one host
  restarting,  // the machines were lost, and others are being found
  saving,      // the job has ended, and its outputs are being brought back
  succeeded,   // every host recorded exit code 0
  failed,      // a host recorded another exit code
  canceled,    // a person stopped it
  lost,        // no host knows how it ended
};
std::string_view state_name(JobState state);
std::optional<JobState> state_of(std::string_view name);
// Returns whether the state is final: such a job never runs again by itself. Part of a lost job may
// be resumed.
bool is_over(JobState state);
// Returns the state of a job that was started just now. ahead: the earlier jobs in the queue.
JobState started_state(const std::vector<std::string>& ahead);

// Returns the state of a sweep's rows that no host reports: a silent host may have run some.
std::string_view untold_rows(bool all_hosts_told, bool goes_on);

// One host's part of a job.
struct NodeStatus {
  std::string name;
  std::optional<JobState> state = {};  // nullopt: the host did not answer
  std::optional<int> code = {};        // exit code as in a shell; set once the part has ended
  bool canceled = false;
  std::string problem = {};  // why the part could not start, or was stopped without a person
};

struct JobStatus {
  JobState state = JobState::lost;
  std::optional<int> code = {};  // exit code as in a shell; set only if a host recorded it
  bool canceled = false;         // by a person, a notice, a lease or the like
  bool by_person = false;        // canceled by a person
  std::int64_t ended_ms = 0;     // Unix time; 0: the job has not ended, or no host knows when
  std::string why = {};          // one line for people, from the place of the job; may be empty
  std::vector<NodeStatus> nodes = {};  // in the order of the job's nodes; may be empty
  // A sweep: each row has an exit code, and nothing has stopped a host's rows.
  bool rows_ended = false;

  bool is_over() const { return jobs::is_over(state); }
};

// Combines the parts into the status of the whole job. names: of the nodes. nodes: nullopt if that
// host did not answer or knows no such job. A part that still runs decides the state. The first
// exit code other than 0 decides the code. Lost parts count only if no other part is known, since a
// replaced node leaves such a record.
JobStatus status_of(const std::vector<std::string>& names,
                    const std::vector<std::optional<job::JobRecord>>& nodes);

// Reads the output of `host-job status ID` on a host: one record, or none if the host knows no such
// job. corrupt: anything else.
Result<std::optional<job::JobRecord>> parse_status(std::string_view text);

}  // namespace lockstep::jobs
