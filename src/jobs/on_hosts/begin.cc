#include "jobs/on_hosts/begin.h"

#include "codec/json.h"
#include "job/job_spec.h"
#include "jobs/on_hosts/ask_hosts.h"
#include "jobs/on_hosts/job_plan.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

namespace lockstep::jobs::on_hosts {
namespace {

// Asks all hosts. A silent host may run the job, so silence is an error.
Result<std::vector<hosts::HostEnding>> ask_all(const KnownJob& job, const char* verb,
                                               const hosts::RunCommand& run) {
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(auto endings, run(loop, about_job(job.nodes, verb, job.id)));
  for (const hosts::HostEnding& ending : endings)
    if (!ending.error.empty()) return fail(Errc::unavailable, ending.error);
  return endings;
}

// Returns the record of exactly this id, if there is one.
Result<std::optional<KnownJob>> record_of(const JobBook& book, const std::string& id) {
  auto found = book.find(id);
  if (!found && found.error().code != Errc::not_found) return Failure(found.error());
  // find() also takes names.
  if (!found || found->id != id) return std::optional<KnownJob>();
  return std::optional(std::move(*found));
}

// Returns whether the part has not begun. A prepared part waits for the word to go, which may never
// come. Its supervisor ends with the client, and may leave the folder: the part looks lost then.
bool only_prepared(const job::PartState& part) {
  return part.stage == job::Stage::prepared ||
         (part.stage == job::Stage::lost && part.started_ms == 0);
}

}  // namespace

Result<StartedJob> begin(const JobBook& book, JobRequest request, const KnownJob& job,
                         const BeginEvents& events, const HostsWorld& world) {
  LOCKSTEP_TRY_ASSIGN(const auto before, record_of(book, job.id));
  // A host may have the folder of a beginning that was cut off.
  request.spec.resumes = before.has_value();
  // The record comes first: if this client is killed meanwhile, the job is still known.
  LOCKSTEP_TRY(book.add(job));
  const Status recorded = events.recorded ? events.recorded(job.id) : Status();
  auto started = recorded ? world.start(request) : Failure(recorded.error());
  if (!started) {
    // Nothing was started, or start_job() has canceled the parts again.
    LOCKSTEP_TRY(before ? book.add(*before) : book.remove(job.id));
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
    if (!record || only_prepared(record->state)) parts.all_begun = false;
  }
  return parts;
}

Result<bool> settle_beginning(const JobBook& book, const KnownJob& job,
                              const hosts::RunCommand& run) {
  if (job.status.state != JobState::starting) return true;
  LOCKSTEP_TRY_ASSIGN(const auto answers, ask_all(job, "status", run));
  LOCKSTEP_TRY_ASSIGN(const BegunParts parts, begun_parts(job.id, answers));
  if (parts.all_begun) {
    // The killed process did not come to note it, and viewers wait for the note.
    LOCKSTEP_TRY(book.note(job.id, JobState::running));
    return true;
  }
  // Some parts never got the word to go. A job runs on all hosts or none, so end the begun parts
  // too.
  LOCKSTEP_TRY_ASSIGN(const auto ended, ask_all(job, "cancel", run));
  for (std::size_t i = 0; i < ended.size(); ++i)
    // A host that does not know the job cannot cancel the job either. Nothing can begin there.
    if (parts.known[i] && ended[i].code != 0)
      return fail(Errc::unavailable,
                  fmt::format("{}: job {} may still begin there", job.nodes[i].name, job.id));
  return false;
}

}  // namespace lockstep::jobs::on_hosts
