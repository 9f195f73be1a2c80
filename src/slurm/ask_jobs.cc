#include "slurm/ask_jobs.h"

#include "base/text.h"
#include "slurm/sacct_command.h"
#include "slurm/scontrol_command.h"
#include "slurm/squeue_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep::slurm {
namespace {

// Seconds by which the clocks of the submitting host and the controller may differ.
constexpr std::int64_t kClockSlack = 120;

using Reports = std::vector<JobReport>;

std::string wanted_words(const std::vector<std::string>& ids) {
  return ids.size() == 1 ? fmt::format("job {}", ids[0]) : fmt::format("{} jobs", ids.size());
}

// Matches a job, a task of an array, or a whole array or heterogeneous job.
bool is_part(const JobReport& status, const std::string& id) {
  return status.id == id || status.job == id;
}

// Matches the record "12_[4-9]", which stands for all waiting tasks of an array. An exact match is
// better, so callers try is_part() first.
bool may_stand_for(const JobReport& status, const std::string& id) {
  return status.id.find('[') != std::string::npos && status.job == whole_job(id);
}

// Returns the controller's answer; empty if the controller knows no such job. An unknown job is
// normal, because the controller forgets jobs minutes after their end.
Result<std::string> controller_says(const RunTool& run, const std::vector<std::string>& argv,
                                    const std::vector<std::string>& ids) {
  auto said = run(argv);
  if (!said) return Failure(std::move(said.error()).within(wanted_words(ids)));
  const Trouble trouble = trouble_of(*said);
  if (trouble == Trouble::unknown_job) return std::string();
  if (trouble != Trouble::none) return Failure(tool_error(wanted_words(ids), argv[0], *said));
  return std::move(said->out);
}

Reports of_job(const Reports& all, const std::string& id) {
  for (const auto& matches : {is_part, may_stand_for}) {
    Reports found;
    std::copy_if(all.begin(), all.end(), std::back_inserter(found),
                 [&](const JobReport& each) { return matches(each, id); });
    if (!found.empty()) return found;
  }
  return {};
}

// Asks squeue once for all jobs, and scontrol for each job that needs more. squeue tells neither
// exit codes nor folders, so ended jobs always need scontrol.
Status add_from_controller(const std::vector<std::string>& ids, Detail detail, const RunTool& run,
                           Reports& found) {
  LOCKSTEP_TRY_ASSIGN(const std::string listed, controller_says(run, squeue_command(ids), ids));
  const Reports queue = parse_squeue(listed);
  for (const std::string& id : ids) {
    Reports known = of_job(queue, id);
    const bool told = std::none_of(known.begin(), known.end(),
                                   [](const JobReport& each) { return each.state.ended(); });
    if (known.empty() || !told || detail == Detail::all) {
      LOCKSTEP_TRY_ASSIGN(const std::string shown,
                          controller_says(run, scontrol_job_command(id), {id}));
      Reports more = of_job(parse_scontrol_jobs(shown), id);
      if (!more.empty()) known = std::move(more);
    }
    found.insert(found.end(), known.begin(), known.end());
  }
  return {};
}

// Adds jobs that only accounting still knows, and the user who canceled a job. Errors are ignored:
// many clusters have no accounting, and the controller's answer is enough while the database is
// down.
void add_from_accounting(const std::vector<std::string>& ids, const RunTool& run, Reports& found) {
  const auto said = run(sacct_command(ids));
  if (!said || !said->exit.ok()) return;
  for (JobReport& past : parse_sacct(said->out)) {
    const auto same = std::find_if(found.begin(), found.end(), [&](const JobReport& each) {
      // Accounting may know an older job with the same id.
      return each.id == past.id && each.name == past.name;
    });
    if (same == found.end()) {
      found.push_back(std::move(past));
    } else if (same->state.name == past.state.name) {
      same->state.cancelled_by = past.state.cancelled_by;
    }
  }
}

}  // namespace

bool is_of(const JobReport& status, const JobAsked& job) {
  if (!is_part(status, job.id) && !may_stand_for(status, job.id)) return false;
  if (!job.name.empty() && status.name != job.name) return false;
  if (!job.user.empty() && status.user != job.user) return false;
  return !job.since || !status.submitted || *status.submitted + kClockSlack >= *job.since;
}

Result<Reports> ask_jobs(const std::vector<JobAsked>& jobs, Detail detail, const RunTool& run) {
  std::vector<std::string> ids;
  for (const JobAsked& job : jobs) {
    if (!is_job_id(job.id))
      return fail(Errc::invalid_input, fmt::format("{} is not a Slurm job id", printable(job.id)));
    if (std::find(ids.begin(), ids.end(), job.id) == ids.end()) ids.push_back(job.id);
  }
  if (ids.empty()) return Reports();
  Reports found;
  LOCKSTEP_TRY(add_from_controller(ids, detail, run, found));
  const auto is_asked_for = [&](const JobReport& status) {
    return std::any_of(jobs.begin(), jobs.end(),
                       [&](const JobAsked& job) { return is_of(status, job); });
  };
  std::erase_if(found, [&](const JobReport& status) { return !is_asked_for(status); });

  std::vector<std::string> for_accounting;
  for (const JobAsked& job : jobs) {
    const Reports known = of_job(found, job.id);
    // The controller does not tell who canceled a job.
    const bool cancelled = std::any_of(
        known.begin(), known.end(), [](const JobReport& each) { return each.state.cancelled(); });
    if (known.empty() || job.all_tasks || (cancelled && detail == Detail::all))
      for_accounting.push_back(job.id);
  }
  // Filter again: accounting may return older jobs with the same ids.
  if (!for_accounting.empty()) add_from_accounting(for_accounting, run, found);
  std::erase_if(found, [&](const JobReport& status) { return !is_asked_for(status); });
  return found;
}

}  // namespace lockstep::slurm
