#include "jobs/rented/owned_end.h"

#include "base/clock_ms.h"
#include "base/mid_line.h"
#include "io/own_folders.h"
#include "proc/signals.h"
#include "project/sync_tree.h"
#include "rent/guard_hosts.h"
#include "rent/job_claim.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <utility>

namespace lockstep::jobs::rented {
namespace {

constexpr std::chrono::milliseconds kClaimPause{100};
constexpr int kNoJob = 1;

std::string going_on_words(const cloud::RentedJob& job) {
  return fmt::format(
      "'{0}' goes on at {1}; lockstep logs -f {0} shows it, lockstep down {0} ends it", job.cluster,
      job.host);
}

std::string ended_words(const cloud::RentedJob& job) {
  return fmt::format(
      "'{}' has ended at {}; the next command about machines on demand brings its outputs",
      job.cluster, job.host);
}

// The same as settle_owned(). This process has the claim, or no other command can be at it.
Result<std::optional<int>> settle_claimed(cloud::Journal& journal, const OwnedWorld& world,
                                          const cloud::RentedJob& job, Telling telling) {
  LOCKSTEP_TRY_ASSIGN(const bool kept, journal.has_job(job.rental));
  if (!kept) return std::optional<int>();
  LOCKSTEP_TRY_ASSIGN(const OwnedState there, world.state(job));
  const OwnedStep step = next_step(job, there, world.now_ms());
  if (step == OwnedStep::wait) return std::optional<int>();
  bool all = true;
  if (step != OwnedStep::forget) {
    LOCKSTEP_TRY_ASSIGN(all, bring_outputs(world, job));
  }
  const Status dropped = journal.drop_job(job.rental);
  // The end is known all the same. The record lets the next command settle the job again.
  if (!dropped) world.say(error_line(dropped.error()));
  if (step != OwnedStep::settle) {
    world.say(
        fmt::format("{} has no job on '{}' any more: it never began there, or was ended there",
                    job.host, job.cluster));
    return std::optional<int>(kNoJob);
  }
  const int code = settled_code(there, all);
  // Without this word the host keeps its record for 30 days, and nothing else.
  if (dropped) (void)world.ask(job, {"told", job.rental});
  if (telling == Telling::full)
    world.say(fmt::format("'{}' has ended at {}: exit code {}, {}", job.cluster, job.host, code,
                          there.note));
  return std::optional<int>(code);
}

// Waits until the other command here that sees to the job's end is done or gone. canceled: a signal
// came.
Result<io::Fd> await_claim(const std::string& rental) {
  while (true) {
    auto mine = rent::claim_job(rental);
    if (mine || mine.error().code != Errc::already_exists) return mine;
    if (const int signal = proc::take_stop_signal(kClaimPause); signal != 0)
      return Failure(Error{Errc::canceled, "stopped by the user", {}, signal});
  }
}

// Writes down the id by which commands here may name the job from now on.
void note_start(cloud::Journal& journal, const OwnedWorld& world, cloud::RentedJob job) {
  const auto state = world.state(job);
  if (!state || state->job.empty()) return;
  job.job = state->job;
  (void)journal.note_job(job);
}

}  // namespace

Result<OwnedState> OwnedWorld::state(const Job& job) const {
  LOCKSTEP_TRY_ASSIGN(const std::string said, ask(job, {"state", job.rental}));
  return read_owned_state(said);
}

Result<std::string> OwnedWorld::ask_there(const Job& job, const Words& argv) {
  return ask_owner(job.host, argv);
}

Result<int> OwnedWorld::run_there(const Job& job, const Words& command, OwnerOutput output) {
  return run_at_owner(job, command, output);
}

Result<OwnedViewEnd> OwnedWorld::view_there(const Job& job, OwnedViewRequest request) {
  LOCKSTEP_TRY_ASSIGN(request.place, rent::GuardHosts::place_of(job.host));
  return view_at_owner(request);
}

Result<bool> OwnedWorld::bring_from_there(const Job& job, const std::string& path, const Say& say) {
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place, rent::GuardHosts::place_of(job.host));
  const project::Project project{.root = job.root, .name = job.tree, .folder = {}};
  project::SyncOptions how;
  how.remark = [&](const std::string& text) {
    say(fmt::format("{}; {} keeps its copy in {}", text, job.host, job.tree));
  };
  LOCKSTEP_TRY_ASSIGN(const auto host, project::sync_back(place, project, path, how));
  if (host.code == 0 && host.files > 0)
    say(fmt::format("{}: {} files, {} brought from {}", path, host.files,
                    project::size_text(host.bytes), job.host));
  if (host.code == 0) return true;
  if (const int signal = host.code - 128; proc::is_stop_signal(signal))
    return Failure(Error{Errc::canceled, host.error, host.hint, signal});
  if (host.code != 1) return fail(Errc::unavailable, host.error, host.hint);
  say(fmt::format("{}: {}; {} keeps its copy in {}", path, host.error, job.host, job.tree));
  return false;
}

std::int64_t OwnedWorld::now_here() {
  return unix_ms();
}

void OwnedWorld::say_here(const std::string& text) {
  end_line();
  std::fputs(fmt::format("lockstep: {}\n", text).c_str(), stderr);
}

Result<bool> bring_outputs(const OwnedWorld& world, const cloud::RentedJob& job) {
  bool all = true;
  if (job.root.empty()) return all;
  for (const std::string& path : job.back) {
    LOCKSTEP_TRY_ASSIGN(const bool came, world.bring(job, path, world.say));
    all = all && came;
  }
  return all;
}

Result<std::optional<int>> settle_owned(cloud::Journal& journal, const OwnedWorld& world,
                                        const cloud::RentedJob& job, Telling telling) {
  const auto mine = rent::claim_job(job.rental);
  if (!mine && mine.error().code == Errc::already_exists) return std::optional<int>();
  if (!mine) return Failure(mine.error());
  return settle_claimed(journal, world, job, telling);
}

Status end_owned(cloud::Journal& journal, const OwnedWorld& world, const cloud::RentedJob& job,
                 bool forgets) {
  (void)settle_owned(journal, world, job, Telling::full);
  const auto code = world.run(job, {"down", job.cluster, "--force"}, OwnerOutput::words);
  if (!code) {
    Error error = code.error();
    error.hint = fmt::format("lockstep down {} --force forgets the job here", job.cluster);
    if (!forgets || error.code != Errc::unavailable) return Failure(std::move(error));
    LOCKSTEP_TRY(journal.drop_job(job.rental));
    error.message += fmt::format("; '{}' is forgotten here", job.cluster);
    error.hint = "its machines end with their lease, or in the provider's console";
    return Failure(std::move(error));
  }
  if (*code != 0)
    return fail(Errc::unavailable, fmt::format("{} has not ended '{}'", job.host, job.cluster));
  LOCKSTEP_TRY_ASSIGN(const bool known, journal.has_job(job.rental));
  if (known) LOCKSTEP_TRY(bring_outputs(world, job));
  return journal.drop_job(job.rental);
}

Result<OwnedShown> show_owned(cloud::Journal& journal, const OwnedWorld& world,
                              const cloud::RentedJob& job, const OwnedShow& show, bool settles) {
  using Core = OwnedViewCore;
  LOCKSTEP_TRY_ASSIGN(const OwnedViewEnd end,
                      world.view(job, {.place = {.name = {}, .target = {}},
                                       .rental = job.rental,
                                       .how = show.how,
                                       .settings = {.cluster = job.cluster,
                                                    .host = job.host,
                                                    .on_stop = show.leaves ? Core::OnStop::leave
                                                                           : Core::OnStop::cancel,
                                                    .canceled = show.cancels,
                                                    .met = show.met},
                                       .say = world.say}));
  if (end.signal != 0) {
    world.say(going_on_words(job));
    return OwnedShown{.signal = end.signal};
  }
  if (!end.code) return fail(Errc::unavailable, end.lost, going_on_words(job));
  // The outputs are here once the job is settled.
  io::Fd mine;
  if (!settles) {
    LOCKSTEP_TRY_ASSIGN(mine, await_claim(job.rental));
  }
  if (!journal.has_job(job.rental).value_or(true)) return OwnedShown{.code = *end.code};
  const auto settled = settle_claimed(journal, world, job, Telling::brief);
  if (settled && *settled) return OwnedShown{.code = code_for_user(**settled, end.canceled_by)};
  if (!settled) {
    const Error& error = settled.error();
    if (error.code == Errc::canceled) return OwnedShown{.signal = error.sys};
    world.say(error_line(error));
    const auto there = world.state(job);
    if (there && there->ended && error.code == Errc::unavailable) {
      world.say(ended_words(job));
      return OwnedShown{.code = code_for_user(settled_code(*there, false), end.canceled_by)};
    }
    if (there && !there->known) return OwnedShown{.view_code = *end.code};
  }
  if (show.how.starts_with("start") && *end.code == 0) note_start(journal, world, job);
  world.say(going_on_words(job));
  return OwnedShown{.view_code = *end.code};
}

Result<OwnedShown> show_owned(const OwnedWorld& world, const cloud::RentedJob& job,
                              const OwnedShow& show) {
  LOCKSTEP_TRY_ASSIGN(auto journal, cloud::Journal::open(io::state_folder()));
  const auto mine = rent::claim_job(job.rental);
  if (!mine && mine.error().code != Errc::already_exists) return Failure(mine.error());
  return show_owned(journal, world, job, show, mine.has_value());
}

}  // namespace lockstep::jobs::rented
