#include "cli/watched_job.h"

#include "base/text.h"
#include "cli/on_demand.h"
#include "cli/subcommand.h"
#include "io/own_folders.h"
#include "project/sync_tree.h"
#include "rent/guard_talk.h"
#include "rent/job_claim.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::cli {
namespace {

using rent::WatchVerb;

constexpr std::chrono::seconds kBetweenTries{2};
constexpr int kTriesToName = 3;
constexpr int kTriesToFetch = 300;
constexpr std::chrono::seconds kWordEvery{20};
constexpr std::chrono::seconds kWordEverySilent{60};

// What lies below `from` on that host comes to the same place below `to`. not_found: it can't be
// read there, or some of it does not come, as what is here is newer.
Status fetch_path(const hosts::HostPlace& place, const std::string& from, const std::string& to,
                  const std::string& path) {
  const project::Project project{.root = to, .name = from, .folder = {}};
  std::string left;
  project::SyncOptions how;
  how.remark = [&](const std::string& text) { left += (left.empty() ? "" : "; ") + text; };
  LOCKSTEP_TRY_ASSIGN(const auto host, project::sync_back(place, project, path, how));
  if (host.code == 0 && left.empty()) return {};
  if (host.code == 0) return fail(Errc::not_found, left);
  return fail(host.code == 1 ? Errc::not_found : Errc::unavailable, host.error, host.hint);
}

// Those that are there: not all may have been on the machine. One that can't be read costs none of
// the others; not_found: no more than that is wrong.
Status fetch_outputs(const hosts::HostPlace& place, const rent::WatchAnswer& there,
                     const cloud::RentedJob& job) {
  Status all;
  for (const std::string& path : job.back) {
    if (std::find(there.back.begin(), there.back.end(), path) == there.back.end()) continue;
    Status one = fetch_path(place, there.root, job.root, path);
    if (!one && one.error().code != Errc::not_found) return one;
    if (all && !one) all = std::move(one);
  }
  return all;
}

// Keeps the record for the next command, which asks the watching host. The command that views the
// job is told that the course has ended.
void leave_to_watcher(rent::OnDemand& world, cloud::RentedJob job) {
  job.left_to_watcher = true;
  (void)world.journal().note_job(job);
}

}  // namespace

Result<rent::WatchAnswer> tell_watcher(rent::OnDemand& world, const cloud::RentedJob& job,
                                       WatchVerb verb) {
  return world.guards().watch(job.watcher, {.verb = verb,
                                            .rental = job.rental,
                                            .cluster = job.cluster,
                                            .tree = job.tree,
                                            .back = job.back,
                                            .job = job.job});
}

Status name_to_watcher(rent::OnDemand& world, const cloud::RentedJob& job) {
  if (job.watcher.empty()) return {};
  auto there = tell_watcher(world, job, WatchVerb::watch);
  for (int tries = 1; tries < kTriesToName && !there; ++tries) {
    if (there.error().code != Errc::unavailable) break;
    LOCKSTEP_TRY(world.web().pause(kBetweenTries));
    there = tell_watcher(world, job, WatchVerb::watch);
  }
  if (!there) return Failure(std::move(there).error());
  if (!there->taken) return {};
  return fail(Errc::unavailable,
              fmt::format("{} ends the job of '{}' just now", job.watcher, job.cluster),
              "wait for it: lockstep cost brings what it has");
}

std::function<void(std::uint64_t, std::uint64_t)> words_to_watcher(rent::OnDemand& world,
                                                                   const cloud::RentedJob& job) {
  using Clock = std::chrono::steady_clock;
  if (job.watcher.empty()) return {};
  return [&world, &job, next = Clock::now() + kWordEvery](std::uint64_t, std::uint64_t) mutable {
    if (Clock::now() < next) return;
    const bool heard = tell_watcher(world, job, WatchVerb::claim).has_value();
    next = Clock::now() + (heard ? kWordEvery : kWordEverySilent);
  };
}

std::optional<int> ended_by_watcher(rent::OnDemand& world, std::string_view program,
                                    const cloud::RentedJob& job) {
  if (job.watcher.empty()) return std::nullopt;
  const auto there = tell_watcher(world, job, WatchVerb::claim);
  if (!there || !there->taken) return std::nullopt;
  tell_line(program,
            fmt::format("{} has not heard of this command at the job's end, and sees to it",
                        job.watcher));
  for (int tries = 0; tries < kTriesToFetch; ++tries) {
    const auto code = fetch_watched(world, program, job);
    if (!code) print_error(program, code.error());
    if (!code) leave_to_watcher(world, job);
    if (!code || *code) return code ? **code : 1;
    if (!world.web().pause(kBetweenTries)) break;
  }
  tell_line(program, "the next command about machines on demand brings its outputs");
  leave_to_watcher(world, job);
  return 1;
}

Result<std::optional<int>> fetch_watched(rent::OnDemand& world, std::string_view program,
                                         const cloud::RentedJob& job) {
  LOCKSTEP_TRY_ASSIGN(const auto there, tell_watcher(world, job, WatchVerb::ask));
  const std::string& host = job.watcher;
  if (!there.known) {
    tell_line(program,
              fmt::format("'{}': {} knows nothing of its job any more", job.cluster, host));
    LOCKSTEP_TRY(world.journal().drop_job(job.rental));
  }
  if (!there.known || !there.ended) return std::optional<int>();
  LOCKSTEP_TRY_ASSIGN(const auto place, rent::GuardHosts::place_of(host));
  std::string what;
  Status come;
  if (!there.logs.empty()) {
    const std::string logs = io::state_folder() + "/rentals";
    const std::string log = rent::name_there(job.cluster, job.rental);
    LOCKSTEP_TRY(io::make_folders(logs));
    for (const std::string& ending : there.log_endings)
      if (const Status part = fetch_path(place, there.logs, logs, log + ending);
          !part && part.error().code != Errc::not_found)
        return Failure(part.error());
    what += fmt::format("; {}", rent::follow_log(log));
  }
  if (!there.root.empty() && !job.root.empty()) {
    tell_line(program, fmt::format("brings the outputs of '{}' from {}; Ctrl-C leaves them there",
                                   job.cluster, host));
    come = fetch_outputs(place, there, job);
    if (!come && come.error().code != Errc::not_found) return Failure(come.error());
    what = come ? fmt::format("; its outputs were there, and are in {} now{}", job.root, what)
                : fmt::format("; what could be brought is in {} now, but {}; {} keeps it in {}{}",
                              job.root, come.error().message, host, there.root, what);
  }
  // Its command was ended after it had brought all: there was nothing left to watch.
  const bool ours =
      !there.taken && there.root.empty() && job.stage == cloud::RentedJob::Stage::ending;
  const int code = ours ? job.code : there.code;
  tell_line(program, fmt::format("'{}' was watched by {} after its command had gone: exit code {}, "
                                 "{}{}",
                                 job.cluster, host, code, ours ? job.note : there.note, what));
  LOCKSTEP_TRY(world.journal().drop_job(job.rental));
  if (come) (void)tell_watcher(world, job, WatchVerb::fetched);
  return std::optional<int>(code);
}

Result<std::optional<int>> fetch_left(rent::OnDemand& world, std::string_view program,
                                      const cloud::RentedJob& job) {
  const auto mine = rent::claim_job(job.rental);
  if (!mine && mine.error().code == Errc::already_exists) return std::optional<int>();
  if (!mine) return Failure(mine.error());
  LOCKSTEP_TRY_ASSIGN(const bool known, world.journal().has_job(job.rental));
  if (!known) return std::optional<int>();
  return fetch_watched(world, program, job);
}

Status settle_watched(rent::OnDemand& world, std::string_view program, const std::string& cluster,
                      bool force) {
  LOCKSTEP_TRY_ASSIGN(const auto jobs, world.journal().jobs());
  for (const cloud::RentedJob& job : jobs) {
    if (job.cluster != cluster || job.watcher.empty()) continue;
    const auto there = fetch_left(world, program, job);
    if (there) continue;
    if (!force || there.error().code == Errc::canceled) {
      Error error = there.error();
      error.hint = fmt::format("lockstep down {} --force forgets that {} has something of its job",
                               cluster, job.watcher);
      return Failure(std::move(error));
    }
    tell_line(program, fmt::format("{}; what {} has of the job of '{}' stays there for 30 days, "
                                   "and is forgotten here",
                                   there.error().message, job.watcher, cluster));
    LOCKSTEP_TRY(world.journal().drop_job(job.rental));
  }
  return {};
}

Status fetch_before_end(rent::OnDemand& world, std::string_view program, const std::string& rental,
                        bool wait) {
  LOCKSTEP_TRY_ASSIGN(const auto jobs, world.journal().jobs());
  const auto job =
      std::find_if(jobs.begin(), jobs.end(), [&](const auto& one) { return one.rental == rental; });
  if (job == jobs.end() || job->watcher.empty() || rent::job_is_claimed(rental)) return {};
  const auto failed = [&](const Error& error) -> Status {
    if (error.code == Errc::canceled) return Failure(error);
    tell_line(program, fmt::format("what {} has of the job of '{}' was not brought: {}",
                                   job->watcher, job->cluster, error.message));
    return {};
  };
  for (int tries = 0; tries < kTriesToFetch; ++tries) {
    const auto there = tell_watcher(world, *job, WatchVerb::ask);
    if (!there) return failed(there.error());
    if (!there->taken || there->ended || !wait) break;
    if (tries == 0)
      tell_line(program,
                fmt::format("{} ends the job of '{}' just now, and brings its outputs: that "
                            "is waited for; --force does not",
                            job->watcher, job->cluster));
    LOCKSTEP_TRY(world.web().pause(kBetweenTries));
  }
  const auto fetched = fetch_left(world, program, *job);
  return fetched ? Status() : failed(fetched.error());
}

// Its own command forgets it, or whoever has asked its watcher.
Status drop_unwatched(rent::OnDemand& world, const std::string& rental) {
  LOCKSTEP_TRY_ASSIGN(const auto jobs, world.journal().jobs());
  for (const cloud::RentedJob& job : jobs)
    if (job.rental == rental && !job.watcher.empty()) return {};
  return world.journal().drop_job(rental);
}

std::optional<rent::WatchAnswer> fetch_saved(rent::OnDemand& world, std::string_view program,
                                             const cloud::RentedJob& job) {
  if (job.watcher.empty() || job.root.empty()) return std::nullopt;
  auto there = tell_watcher(world, job, WatchVerb::ask);
  const auto place = rent::GuardHosts::place_of(job.watcher);
  if (!there || !place || there->root.empty()) return std::nullopt;
  tell_line(program, fmt::format("its machines are gone; its outputs come from {}", job.watcher));
  if (const Status come = fetch_outputs(*place, *there, job); !come) {
    print_error(program, come.error());
    return std::nullopt;
  }
  return std::move(*there);
}

// What is there alone stays, and is fetched by the next command.
void end_watched(rent::OnDemand& world, std::string_view program, const cloud::RentedJob& job,
                 bool brought) {
  const auto said = tell_watcher(world, job, WatchVerb::drop);
  const bool kept = !said || said->taken || (said->ended && !said->root.empty());
  if (kept && !(said && !said->taken && brought)) {
    leave_to_watcher(world, job);
    return tell_line(program, fmt::format("the next command about machines on demand asks {} what "
                                          "it has of the job of '{}'",
                                          job.watcher, job.cluster));
  }
  if (kept) (void)tell_watcher(world, job, WatchVerb::fetched);
  (void)world.journal().drop_job(job.rental);
}

void end_if_watched(rent::OnDemand& world, std::string_view program, const std::string& rental) {
  const auto jobs = world.journal().jobs();
  if (!jobs || rent::job_is_claimed(rental)) return;
  for (const cloud::RentedJob& job : *jobs)
    if (job.rental == rental && !job.watcher.empty()) end_watched(world, program, job, false);
}

}  // namespace lockstep::cli
