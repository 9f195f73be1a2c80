// lockstep trace: writes the events of a job as a trace for Perfetto.
#include "status/trace.h"

#include "base/log.h"
#include "base/text.h"
#include "cli/event_options.h"
#include "cli/one_job.h"
#include "cli/subcommand.h"
#include "io/fd.h"
#include "jobs/event_reader.h"

#include <fmt/core.h>

#include <unistd.h>

#include <utility>

namespace lockstep::cli {
namespace {

constexpr std::size_t kMostFile = 256UL << 20;

// Reads a file of --events, or the report of a job that has ended.
Result<std::vector<status::JobEvent>> events_of_file(const std::string& path) {
  LOCKSTEP_TRY_ASSIGN(const std::string text, io::read_file(path, kMostFile));
  if (const auto answer = status::answer_of_report(text, 0)) {
    LOCKSTEP_TRY_ASSIGN(auto read, status::read_event_answer(*answer));
    return std::move(read.events);
  }
  std::vector<status::JobEvent> events;
  std::size_t others = 0;
  for (const std::string& line : split(text, '\n')) {
    if (strip(line).empty()) continue;
    auto event = status::read_job_event(line);
    if (event)
      events.push_back(std::move(*event));
    else
      ++others;
  }
  if (events.empty())
    return fail(Errc::corrupt, printable(path) + " has no events of a job",
                "name a file of lockstep run --events or --report");
  if (others > 0) log::warning("{}: {} lines are not events of a job", printable(path), others);
  return events;
}

Result<std::vector<status::JobEvent>> events_of_job(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(const NamedJob named, name_job(call, "trace"));
  LOCKSTEP_TRY_ASSIGN(const auto job, open_named(named));
  jobs::EventReader reader(*job);
  LOCKSTEP_TRY_ASSIGN(auto events, reader.all());
  if (events.empty())
    return fail(Errc::unavailable,
                "no agent of " + job->record().id + " answers, and no report has its events",
                "lockstep trace --from FILE reads a file of --events");
  return events;
}

Status write_trace(const Call& call) {
  TraceOptions options;
  fill(trace_table(), call.parsed, options);
  if (options.from && !call.parsed.names.empty())
    return fail(Errc::invalid_input, "--from names a file, so no job can be named");
  LOCKSTEP_TRY_ASSIGN(auto events,
                      options.from ? events_of_file(*options.from) : events_of_job(call));
  const std::size_t count = events.size();
  const std::string trace = status::trace_json(std::move(events)) + "\n";
  if (!options.output || *options.output == "-")
    return io::write_all(STDOUT_FILENO, trace, "stdout");
  LOCKSTEP_TRY(io::write_file(*options.output, trace));
  fmt::print("{}: {} event{}; https://ui.perfetto.dev shows this file\n",
             printable(*options.output), count, count == 1 ? "" : "s");
  return {};
}

}  // namespace

extern constinit const Subcommand kTrace{.name = "trace",
                                         .summary = "write the course of a job for Perfetto",
                                         .table = trace_table,
                                         .run = run_status<write_trace>,
                                         .signals = Signals::blocked};

}  // namespace lockstep::cli
