// The report that a user reads after a failed job: a pure function from the failures of this job to
// torchrun's text, and to JSON for --report.
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
  int exit_code = 0;         // negative: minus the signal that ended the worker
  std::int64_t seen_ms = 0;  // unix time in ms at which the agent saw the worker end
  bool after_stop = false;   // the worker ended after the agent had begun to stop the group

  std::optional<std::string> error_file;  // path of the record below
  std::optional<ErrorRecord> error;
  std::string stdout_log;  // paths of the log files; empty: none
  std::string stderr_log;

  std::vector<std::string> stderr_tail;  // shown only without a record
  bool tail_holds_stdout = false;  // stdout and stderr go to the same place (2>&1, a terminal)
  std::vector<std::string> notes;  // "killed by the kernel's out-of-memory killer", "core dumped"
  // Where the other ranks of the node were when this one failed, a sentence each: "the other 7
  // ranks were in all_reduce, train.py:88". All ranks, if the timer of this one expired.
  std::vector<std::string> others = {};
};

struct FailureReport {
  std::string title;  // script, module or executable: "train.py"
  std::string run_id;
  std::string image = {};                    // of --container; empty: none
  std::string outcome = "failed";            // for JSON: failed, succeeded, interrupted, ...
  std::optional<std::int64_t> stop_sent_ms;  // when the agent began to stop the group
  std::vector<WorkerFailure> failures;       // in the order in which they were observed
  // With several nodes: number of leading entries of `failures` that come from the node that failed
  // first. The root cause is sought among these entries, and among the rest only if none of these
  // qualifies. Clocks of different machines are not compared.
  std::optional<std::size_t> root_among;
  // A reason other than a worker that ended the job: a lost node, a signal. Used if no worker
  // failed by itself.
  std::string event;
  // Where this node's ranks were when they were stopped, a sentence each.
  std::vector<std::string> others = {};
  // Use the event even if a worker failed: the job could not go on for another reason.
  bool event_counts = false;
};

// Returns the time of a failure: the error record's time, else the time at which the agent saw it.
std::int64_t failure_time_ms(const WorkerFailure& failure);

// Returns whether the failure follows from the agent's own stop: seen after the stop, and not
// recorded before it.
bool is_consequence(const FailureReport& report, const WorkerFailure& failure);

// Returns the index of the earliest failure. On a tie the one observed first wins. A consequence
// (see is_consequence) is chosen only if all failures are consequences and no event is known.
// nullopt: no failures, or the event is the cause.
std::optional<std::size_t> root_cause(const FailureReport& report);

// Returns the event if it is the root cause, else nullptr.
const std::string* root_event(const FailureReport& report);

// Returns the text after "traceback :". Lines after the first are indented by two blanks where
// torchrun does so.
std::string failure_message(const WorkerFailure& failure);

// Formats a log line: "failed (exitcode: 3) local_rank: 0 (pid: 7) of binary: /usr/bin/python3".
std::string failed_line(const WorkerFailure& failure, std::string_view binary);

// The last line of torchrun's traceback, printed above the report. torchrun prints the trailing
// blank, too.
inline constexpr std::string_view kChildFailedError =
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ";

// Returns the one line that best explains the failure: the last line of the record, else the first
// note, else the last line of stderr. Empty: nothing is known.
std::string last_words(const WorkerFailure& failure);

// Formats the failure as one log line: "rank 3 on n1 failed (exitcode: 1): ValueError: x".
std::string failure_line(const WorkerFailure& failure);

// Returns the indices of the failures in report order: by global rank, then by host.
std::vector<std::size_t> in_rank_order(const FailureReport& report);

struct ReportStyle {
  bool all = false;     // show every entry in full, also those of stopped workers
  bool colour = false;  // colour the root cause
};

// Formats the block from the upper to the lower border, without a final newline. Unlike torchrun's,
// an entry may end with "  note      : ..." and "  logs      : ..." lines and, if the worker left
// no record,
//   stderr    : last 2 lines:
//     text
// Only the root cause is shown in full. Other failures are cut to what tells them apart, and
// stopped workers are named in one line. If an event is the cause, its text takes the place of the
// root cause's entry.
std::string format_report(const FailureReport& report, const ReportStyle& style = {});

// Converts failures to the JSON array that nodes exchange, and back. The text has at most 64 KiB,
// so that thousands of nodes can report. The longest tails and the latest failures are cut first.
std::string failures_json(const FailureReport& report);
Result<std::vector<WorkerFailure>> parse_failures(std::string_view text);

}  // namespace lockstep::agent
