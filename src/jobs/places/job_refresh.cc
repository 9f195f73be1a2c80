#include "jobs/places/job_refresh.h"

#include "base/log.h"
#include "codec/json.h"
#include "jobs/on_slurm/login_submit.h"
#include "jobs/on_slurm/slurm_follow.h"
#include "jobs/rented/owned_job.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace lockstep::jobs::places {
namespace {

// `lockstep jobs` must not wait long for a silent host.
constexpr std::chrono::seconds kPatience{5};

// One host's answers about the jobs in question.
struct Told {
  hosts::HostPlace host;
  bool reached = false;
  std::vector<job::JobRecord> records;
};

bool same_host(const hosts::HostPlace& one, const hosts::HostPlace& other) {
  return one.name == other.name && one.target == other.target && one.here == other.here;
}

Told* find(std::vector<Told>& all, const hosts::HostPlace& host) {
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const Told& each) { return same_host(each.host, host); });
  return at == all.end() ? nullptr : &*at;
}

void take(Told& told, const hosts::HostEnding& ending) {
  const nlohmann::json answer = codec::parse_json(ending.out);
  told.reached = ending.error.empty() && answer.is_array();
  if (!ending.error.empty()) log::warning("{}", ending.error);
  for (std::size_t i = 0; told.reached && i < answer.size(); ++i)
    if (auto record = job::record_from_json(answer[i])) told.records.push_back(std::move(*record));
}

// Asks hosts and adds their answers to `told`. Hosts without an answer before are not asked again.
Status ask(const std::vector<hosts::HostPlace>& places, const std::vector<std::string>& ids,
           const hosts::RunCommand& run, std::vector<Told>& told) {
  std::vector<hosts::HostPlace> hosts;
  for (const hosts::HostPlace& place : places) {
    const Told* known = find(told, place);
    // Each silent host costs the whole patience once.
    if (known != nullptr && !known->reached) continue;
    if (known == nullptr) told.push_back({.host = place, .records = {}});
    if (std::none_of(hosts.begin(), hosts.end(),
                     [&](const hosts::HostPlace& host) { return same_host(host, place); }))
      hosts.push_back(place);
  }
  if (hosts.empty()) return {};
  std::vector<std::string> argv = {"host-job", "status"};
  argv.insert(argv.end(), ids.begin(), ids.end());
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(const auto endings, run(loop, {.hosts = hosts,
                                                     .argv = std::move(argv),
                                                     .own_binary = true,
                                                     .input = hosts::CommandRequest::Input::none,
                                                     .output = hosts::CommandRequest::Output::keep,
                                                     .limit = kPatience}));
  for (std::size_t i = 0; i < hosts.size(); ++i)
    take(*find(told, hosts[i]), endings[i]);
  return {};
}

// Asks Slurm once for all of its jobs: each squeue call loads the controller, which all users
// share.
Status ask_slurm(const JobBook& book, std::vector<KnownJob>& jobs,
                 const on_slurm::SlurmWorld& world) {
  std::vector<KnownJob*> mine;
  std::vector<KnownJob> asked;
  for (KnownJob& job : jobs) {
    if (job.is_over() || !on_slurm::slurm_place_here(job)) continue;
    mine.push_back(&job);
    asked.push_back(job);
  }
  if (mine.empty()) return {};
  const auto statuses = on_slurm::ask_slurm_jobs(asked, world);
  // No answer says nothing about the jobs: keep their states.
  if (!statuses) {
    log::warning("{}", statuses.error().message);
    return {};
  }
  for (std::size_t i = 0; i < mine.size(); ++i) {
    // nullopt: neither Slurm nor the job's folder knows the job.
    mine[i]->status = (*statuses)[i].value_or(JobStatus{.state = JobState::lost});
    LOCKSTEP_TRY(book.note(mine[i]->id, mine[i]->status));
  }
  return {};
}

Status settle(const JobBook& book, KnownJob& job, std::vector<Told>& told, std::int64_t now_ms) {
  bool all_reached = true;
  bool all_told = true;
  std::vector<std::optional<job::JobRecord>> nodes;
  for (const hosts::HostPlace& place : job.nodes) {
    const Told* host = find(told, place);
    all_reached = all_reached && host != nullptr && host->reached;
    nodes.emplace_back();
    for (std::size_t i = 0; host != nullptr && i < host->records.size(); ++i)
      if (host->records[i].spec.id == job.id) nodes.back() = host->records[i];
    all_told = all_told && nodes.back().has_value();
  }
  JobStatus status = status_of(node_names(job), nodes);
  if (status.state == JobState::lost && !all_told) {
    // A silent host may still know the job.
    if (!all_reached) {
      LOCKSTEP_TRY_ASSIGN(job.away_ms, book.note_away(job.id, now_ms));
      return {};
    }
    // The hosts do not know a job yet that another process is starting.
    if (job.status.state == JobState::starting) return {};
  }
  job.status = std::move(status);
  job.away_ms = 0;
  return book.note(job.id, job.status);
}

// Takes the states that only the record of a rented job's course tells.
Status ask_courses(const JobBook& book, std::vector<KnownJob>& jobs,
                   const std::vector<cloud::RentedJob>& courses) {
  for (KnownJob& job : jobs) {
    // Its owner has told the state: no course is here.
    if (rented::owned_course_of(job, courses)) continue;
    const auto state = rented::state_in_course(job, courses);
    if (!state) continue;
    // Do not overwrite the end of an attempt.
    if (!job.is_over()) LOCKSTEP_TRY(book.note(job.id, *state));
    job.status.state = *state;
    job.away_ms = 0;
  }
  return {};
}

// Asks the owners of rentals for the states of jobs that no book has. canceled: a signal came.
Status ask_owners(std::vector<KnownJob>& jobs, const PlacesWorld& world) {
  const auto courses = world.known_courses();
  for (KnownJob& job : jobs) {
    auto course = rented::owned_course_of(job, courses);
    if (!course) continue;
    rented::OwnedJob asked(job, std::move(*course), world.owned);
    auto status = asked.status();
    if (!status && status.error().code == Errc::canceled) return Failure(status.error());
    job = asked.record();
    job.away_ms = status ? 0 : world.owned.now_ms();
    if (status)
      job.status = std::move(*status);
    else
      log::warning("{}", status.error().message);
  }
  return {};
}

// Returns whether hosts can tell the state of the job. The machines of a restarting job are gone.
bool is_asked(const KnownJob& job) {
  return !job.is_over() && !job.nodes.empty() && job.status.state != JobState::restarting &&
         job.status.state != JobState::saving;
}

}  // namespace

const PlacesWorld& real_places() {
  static const PlacesWorld world;
  return world;
}

std::vector<KnownJob> owned_jobs(const PlacesWorld& world) {
  std::vector<KnownJob> jobs;
  for (const cloud::RentedJob& course : rented::owned_among(world.known_courses()))
    jobs.push_back(rented::known_owned(course));
  return jobs;
}

Status refresh_jobs(const JobBook& book, std::vector<KnownJob>& jobs, const PlacesWorld& world) {
  LOCKSTEP_TRY(ask_owners(jobs, world));
  LOCKSTEP_TRY(ask_slurm(book, jobs, world.slurm));
  LOCKSTEP_TRY(ask_courses(book, jobs, world.known_courses()));
  std::vector<hosts::HostPlace> hosts;
  std::vector<std::string> ids;
  std::vector<KnownJob*> asked;
  std::vector<Told> told;
  for (KnownJob& job : jobs) {
    if (!is_asked(job)) continue;
    asked.push_back(&job);
    if (on_slurm::slurm_place(job)) continue;
    ids.push_back(job.id);
    hosts.insert(hosts.end(), job.nodes.begin(), job.nodes.end());
  }
  // All hosts at once: the slowest host sets the time.
  LOCKSTEP_TRY(ask(hosts, ids, world.run, told));
  // A login host answers for one Slurm job at a time.
  for (KnownJob* job : asked) {
    if (!on_slurm::slurm_place(*job)) continue;
    const Told* host = find(told, job->nodes.front());
    if (host == nullptr || host->reached)
      LOCKSTEP_TRY(on_slurm::complete_submission(book, *job, {.run = world.run}));
    if (!job->is_over()) LOCKSTEP_TRY(ask(job->nodes, {job->id}, world.run, told));
  }
  for (KnownJob* job : asked)
    if (!job->is_over()) LOCKSTEP_TRY(settle(book, *job, told, world.slurm.unix_ms()));
  return {};
}

}  // namespace lockstep::jobs::places
