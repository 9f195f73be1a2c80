#include "cli/event_options.h"

namespace lockstep::cli {
namespace {

constexpr std::string_view kWhichJob =
    "JOB is a name or id in the list of lockstep jobs, or pid-N. Without JOB, the only\n"
    "job that runs is meant.\n";

Table make_events_table() {
  return {.program = "lockstep events",
          .summary = "Shows what happened to a job: rounds, starts, hangs, failures, restarts.",
          .examples =
              "lockstep events\n"
              "lockstep events -f train.py\n"
              "lockstep events --json pid-4711 | jq 'select(.event == \"hung\")'",
          .details =
              "Agents keep the events of the last 24 hours, at most 4 MB of them. Of a job on\n"
              "hosts that has ended, its report has the last 500.",
          .epilog = kWhichJob,
          .operands = Operands::names,
          .groups = {{"Options",
                      {
                          {.name = "follow",
                           .field = into<&EventsOptions::follow>,
                           .help = "go on until the job ends",
                           .letter = 'f'},
                          {.name = "json",
                           .field = into<&EventsOptions::json>,
                           .help = "for programs: the lines of --events"},
                          help_option(),
                          version_option(),
                      }}},
          .shown_names = "[JOB]"};
}

Table make_trace_table() {
  return {.program = "lockstep trace",
          .summary = "Writes the course of a job as a trace for Perfetto and chrome://tracing.",
          .examples =
              "lockstep trace -o job.json train.py\n"
              "lockstep trace --from events.jsonl -o job.json",
          .details =
              "Shows the rounds, starts, waits, hangs, failures and restarts of each node,\n"
              "and the life of each rank. Open the file at https://ui.perfetto.dev, which\n"
              "reads it in the browser, without an upload.",
          .epilog = kWhichJob,
          .operands = Operands::names,
          .groups = {{"Options",
                      {
                          {.name = "output",
                           .field = into<&TraceOptions::output>,
                           .metavar = "FILE",
                           .help = "where the trace goes",
                           .shown_default = "stdout",
                           .letter = 'o'},
                          {.name = "from",
                           .field = into<&TraceOptions::from>,
                           .metavar = "FILE",
                           .help = "take the events of this file (of --events or --report), not "
                                   "of a job"},
                          help_option(),
                          version_option(),
                      }}},
          .shown_names = "[JOB]"};
}

}  // namespace

const Table& events_table() {
  static const Table table = make_events_table();
  return table;
}

const Table& trace_table() {
  static const Table table = make_trace_table();
  return table;
}

}  // namespace lockstep::cli
