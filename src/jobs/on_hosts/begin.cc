#include "jobs/on_hosts/begin.h"

#include "codec/json.h"
#include "job/job_spec.h"
#include "jobs/on_hosts/job_plan.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::jobs::on_hosts {
namespace {

// Asks all hosts. A silent host may run the job, so silence is an error.
Result<std::vector<hosts::HostEnding>> ask_all(const KnownJob& job, const char* verb) {
  LOCKSTEP_TRY_ASSIGN(auto endings,
                      hosts::run_command({.hosts = job.nodes,
                                          .argv = {"host-job", verb, job.id},
                                          .own_binary = true,
                                          .input = hosts::CommandRequest::Input::none,
                                          .output = hosts::CommandRequest::Output::keep}));
  for (const hosts::HostEnding& ending : endings)
    if (!ending.error.empty()) return fail(Errc::unavailable, ending.error);
  return endings;
}

}  // namespace

Result<StartedJob> begin(const JobBook& book, const JobRequest& request, const KnownJob& job,
                         const BeginEvents& events) {
  // The record comes first: if this client is killed meanwhile, the job is still known.
  LOCKSTEP_TRY(book.add(job));
  const Status recorded = events.recorded ? events.recorded(job.id) : Status();
  auto started = recorded ? start_job(request) : Failure(recorded.error());
  if (!started) {
    LOCKSTEP_TRY(book.remove(job.id));
    return Failure(started.error());
  }
  LOCKSTEP_TRY(book.note_plan(job.id, plan_text(request, *started)));
  if (events.started) events.started(started->ahead);
  LOCKSTEP_TRY(book.note(job.id, started_state(started->ahead)));
  return started;
}

Result<BegunParts> begun_parts(const std::string& job,
                               const std::vector<hosts::HostEnding>& answers) {
  BegunParts parts;
  for (const hosts::HostEnding& host : answers) {
    const nlohmann::json answer = codec::parse_json(host.out);
    if (host.code != 0 || !answer.is_array())
      return fail(Errc::unavailable, "a host did not report the state of job " + job);
    parts.known.push_back(!answer.empty());
    const auto record =
        answer.empty() ? fail(Errc::not_found, "") : job::record_from_json(answer[0]);
    // A prepared part waits for the word to go, which may never come.
    if (!record || record->state.stage == job::Stage::prepared) parts.all_begun = false;
  }
  return parts;
}

Result<bool> settle_beginning(const KnownJob& job) {
  if (job.status.state != JobState::starting) return true;
  LOCKSTEP_TRY_ASSIGN(const auto answers, ask_all(job, "status"));
  LOCKSTEP_TRY_ASSIGN(const BegunParts parts, begun_parts(job.id, answers));
  if (parts.all_begun) return true;
  LOCKSTEP_TRY_ASSIGN(const auto ended, ask_all(job, "cancel"));
  for (std::size_t i = 0; i < ended.size(); ++i)
    if (parts.known[i] && ended[i].code != 0)
      return fail(Errc::unavailable,
                  fmt::format("{}: job {} may still begin there", job.nodes[i].name, job.id));
  return false;
}

}  // namespace lockstep::jobs::on_hosts
