// What a person reads when a job failed: a pure function from the failures seen on this node to
// torchrun's report, and to JSON for --report.
#pragma once

#include "agent/error_file.h"
#include "base/error.h"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::agent {

struct WorkerFailure {
  int global_rank = 0;
  int local_rank = 0;
  std::string host;  // the node's display name (host::node_name())
  pid_t pid = 0;
  int exit_code = 0;         // negative: minus the signal that ended it
  std::int64_t seen_ms = 0;  // unix time at which the agent saw the end
  bool after_stop = false;   // seen after the agent had begun to stop the group

  std::optional<std::string> error_file;  // path of the record below
  std::optional<ErrorRecord> error;
  std::string stdout_log;  // paths of its log files; empty: none
  std::string stderr_log;

  std::vector<std::string> stderr_tail;  // shown only without a record
  bool tail_holds_stdout = false;        // both streams went one way (2>&1, a terminal)
  std::vector<std::string> notes;  // "killed by the kernel's out-of-memory killer", "core dumped"
};

struct FailureReport {
  std::string title;  // script, module or executable: "train.py"
  std::string run_id;
  std::string outcome = "failed";            // for JSON: failed, succeeded, interrupted, ...
  std::optional<std::int64_t> stop_sent_ms;  // when the agent began to stop the group
  std::vector<WorkerFailure> failures;       // in the order in which they were observed
  // Of several nodes: the root cause is sought among so many first ones, those of the node that
  // failed first, and elsewhere only where none of them is one. Clocks of different machines are
  // not compared.
  std::optional<std::size_t> root_among;
  // What else ended the job: a node is gone, a signal. Counts where no worker failed by itself.
  std::string event;
  bool event_counts = false;  // ... even where one did: the job could not go on for another reason
};

// When it failed: the error record's time, else the time it was seen.
std::int64_t failure_time_ms(const WorkerFailure& failure);

// Seen after the agent's own stop, and not recorded before it.
bool is_consequence(const FailureReport& report, const WorkerFailure& failure);

// Index of the earliest failure, ties to the one observed first. A failure seen after the agent's
// own stop is a consequence, unless its record is older than the stop; it is chosen only if all
// are and no event is known. nullopt without failures, or where the event is the cause.
std::optional<std::size_t> root_cause(const FailureReport& report);

// The event, where that is the cause and no worker is. nullptr otherwise.
const std::string* root_event(const FailureReport& report);

// What follows "traceback :" for this failure, lines after the first indented by two spaces where
// torchrun does so.
std::string failure_message(const WorkerFailure& failure);

// "failed (exitcode: 3) local_rank: 0 (pid: 7) of binary: /usr/bin/python3"
std::string failed_line(const WorkerFailure& failure, std::string_view binary);

// The last line of torchrun's traceback, which the report follows. Its trailing blank is
// torchrun's.
inline constexpr std::string_view kChildFailedError =
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ";

// The one line that says most about why: of the record, else the first note, else the last line of
// stderr. Empty: nothing is known.
std::string last_words(const WorkerFailure& failure);

// In one line, for a log: "rank 3 on n1 failed (exitcode: 1): ValueError: x".
std::string failure_line(const WorkerFailure& failure);

// The failures' indices as a report lists and numbers them: by global rank, then by host.
std::vector<std::size_t> in_rank_order(const FailureReport& report);

struct ReportStyle {
  bool all = false;     // every entry in full, those of stopped workers too
  bool colour = false;  // of the root cause
};

// The block from upper to lower border, lines ended by '\n' but for the last. Beyond torchrun's, an
// entry may end with "  note      : ..." and "  logs      : ..." lines and, where the worker left
// no record,
//   stderr    : last 2 lines:
//     text
// Only the root cause stands there in full. Other failures are cut to what tells them apart, and
// the workers that were stopped are named in one line. Where an event is the cause, it stands in
// the place of the root cause's entry.
std::string format_report(const FailureReport& report, const ReportStyle& style = {});

// What nodes tell one another: an array of failures in JSON, and back. At most 64 KiB, so that
// thousands of nodes can be heard: the latest failures and the longest tails are cut first.
std::string failures_json(const FailureReport& report);
Result<std::vector<WorkerFailure>> parse_failures(std::string_view text);

}  // namespace lockstep::agent
