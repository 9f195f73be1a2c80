// lockstep events: shows what happened to a job, wherever it runs.
#include "cli/event_options.h"
#include "cli/one_job.h"
#include "cli/subcommand.h"
#include "jobs/event_reader.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

namespace lockstep::cli {
namespace {

// Returns false if nobody reads the output any more.
bool print_events(const std::vector<status::JobEvent>& events, bool json) {
  for (const status::JobEvent& event : events)
    std::puts((json ? status::job_event_json(event) : status::job_event_text(event)).c_str());
  return std::fflush(stdout) == 0;
}

Error no_events(const jobs::Job& job) {
  return {.code = Errc::unavailable,
          .message = "no agent of " + job.record().id + " answers, and no report has its events",
          .hint = "lockstep run --events FILE keeps the events of a job"};
}

// A question to hosts is a request to each of them.
std::chrono::seconds pause_of(const jobs::Job& job) {
  return std::max(job.pause(), std::chrono::seconds(job.record().nodes.empty() ? 1 : 3));
}

Result<ExitCode> follow_events(jobs::Job& job, jobs::EventReader& reader, bool json) {
  bool any = false;
  bool ended = false;  // all agents that answered last have seen the job's end
  while (true) {
    const auto events = reader.next();
    // A host that does not answer may do so later.
    if (!events && events.error().code != Errc::unavailable) return Failure(events.error());
    if (events && !print_events(*events, json)) return ExitCode::ok;
    any = any || reader.answered();
    if (reader.answered()) ended = reader.ended();
    if (!events || !reader.answered() || reader.ended()) {
      const auto status = job.status();
      if (status && status->is_over() && !job.may_begin_again()) break;
    }
    if (const int signal = proc::take_stop_signal(pause_of(job)); signal != 0)
      return passed_on(128 + signal);
  }
  if (!any) return Failure(no_events(job));
  // An agent answers no more once the job has ended, so the events after the last look are lost.
  if (!ended && !json)
    fmt::print(stderr, "lockstep events: {} has ended; its last events are kept only by --events\n",
               job.record().id);
  return ExitCode::ok;
}

Result<ExitCode> show_events(const Call& call) {
  EventsOptions options;
  fill(events_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(const NamedJob named, name_job(call, "events"));
  LOCKSTEP_TRY_ASSIGN(const auto job, open_named(named));
  jobs::EventReader reader(*job);
  if (options.follow) return follow_events(*job, reader, options.json);
  LOCKSTEP_TRY_ASSIGN(const auto events, reader.all());
  if (!reader.answered()) return Failure(no_events(*job));
  print_events(events, options.json);
  return ExitCode::ok;
}

}  // namespace

extern constinit const Subcommand kEvents{.name = "events",
                                          .summary = "show what happened to a job",
                                          .table = events_table,
                                          .run = show_events,
                                          .signals = Signals::blocked};

}  // namespace lockstep::cli
