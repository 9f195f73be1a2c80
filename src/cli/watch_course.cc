#include "cli/watch_course.h"

#include "base/date_text.h"
#include "base/text.h"
#include "cli/on_demand.h"
#include "hosts/registry.h"
#include "io/own_folders.h"
#include "jobs/on_hosts/hosts_job.h"
#include "jobs/places/find_job.h"
#include "project/sync_tree.h"
#include "rent/gang.h"
#include "rent/guard.h"
#include "rent/guard_talk.h"
#include "rent/rental_files.h"
#include "rent/rented_cluster.h"
#include "rent/rented_host.h"
#include "rent/watch_desk.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr std::string_view kWatching = "lockstep host-guard";
constexpr std::uint64_t kRoomLeft = 1ULL << 30;
constexpr std::int64_t kNearEndMs = 4LL * 60'000;
constexpr std::int64_t kAWhileMs = 1000;
constexpr int kLostCode = 255;
constexpr int kLockTries = 60;

// So long its command has at the job's end, from each word of it on.
std::int64_t grace_ms() {
  return 2 * rent::guard_pace().silent_ms;
}

Status check_room(const std::string& folder, std::uint64_t bytes) {
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0) return fail_sys(folder, errno);
  if (bytes + kRoomLeft <= std::uint64_t{disk.f_bavail} * disk.f_frsize) return {};
  return fail(Errc::exhausted, fmt::format("they are {}, and the disk of the host that watches has "
                                           "no room for them",
                                           project::size_text(bytes)));
}

}  // namespace

using Stage = cloud::RentedJob::Stage;

void WatchCourse::tell(const std::string& text) const {
  tell_line(kWatching, text);
}

Status WatchCourse::pause(std::int64_t ms) {
  return world_.web().pause(std::chrono::milliseconds(ms));
}

// What its command has said since. false: it has ended it, and wants nothing any more.
bool WatchCourse::refresh() {
  const auto jobs = world_.journal().jobs();
  if (!jobs) return true;
  const auto job = std::find_if(jobs->begin(), jobs->end(),
                                [&](const auto& one) { return one.rental == job_.rental; });
  if (job == jobs->end() || job->stage == Stage::ended) return false;
  job_ = *job;
  auto rental = world_.journal().of_cluster(job_.cluster);
  closed_ = !rental && rental.error().code == Errc::not_found;
  if (rental) rental_ = std::move(*rental);
  return true;
}

Status WatchCourse::change(const std::function<bool(cloud::RentedJob&)>& change) {
  LOCKSTEP_TRY_ASSIGN(auto job, rent::change_watched(world_, job_.rental, change));
  if (!job) return fail(Errc::not_found, "its command has ended it");
  job_ = std::move(*job);
  return {};
}

Result<std::vector<hosts::HostPlace>> WatchCourse::places() const {
  LOCKSTEP_TRY_ASSIGN(const auto registry, hosts::Registry::open(io::state_folder()));
  auto places = rent::rented_places(rental_, registry.pins_file(rental_.cluster),
                                    rent::user_key_file(rental_.cluster));
  if (places.empty()) return fail(Errc::unavailable, "its machines are gone");
  return places;
}

// Also on a thread of its own, so with a world of its own.
bool WatchCourse::machines_gone() const {
  const auto other = rent::OnDemand::open();
  if (!other) return false;
  cloud::Rental copy = rental_;
  return rent::look_only(**other, copy) && !cloud::is_whole(copy);
}

// Only what has begun everywhere: before that its command may still be at it.
Result<WatchCourse::Seen> WatchCourse::follow() {
  const auto hosts = places();
  const jobs::KnownJob known{.id = job_.job,
                             .name = job_.cluster,
                             .place = job_.cluster,
                             .command = {},
                             .nodes = hosts ? *hosts : std::vector<hosts::HostPlace>()};
  bool begun = hosts.has_value();
  if (begun) {
    LOCKSTEP_TRY_ASSIGN(const auto records, jobs::on_hosts::ask_records(known));
    for (const auto& record : records)
      begun = begun && record && record->state.stage != job::Stage::prepared;
  }
  if (!begun) return machines_gone() ? Seen::gone : Seen::nothing;
  tell(fmt::format("{}: watches job {} of '{}'", date_text(world_.web().now_ms()), job_.job,
                   job_.cluster));
  LOCKSTEP_TRY_ASSIGN(const auto outcome, jobs::places::open_job(known)->follow(
                                              {.gone = [this] { return machines_gone(); }}));
  if (outcome.left) return Seen::left;
  if (outcome.gone) return Seen::gone;
  code_ = outcome.status.code.value_or(kLostCode);
  return Seen::ended;
}

// Machines that go on being there give time; those that are taken away, or at their lease's end,
// don't.
bool WatchCourse::is_hurried(const std::vector<hosts::HostPlace>& places) {
  const auto leases = rent::ask_leases(places);
  noticed_ = leases && std::any_of(leases->begin(), leases->end(),
                                   [](const auto& one) { return !one.state.notice.empty(); });
  return noticed_ || (rental_.ends_ms > 0 && rental_.ends_ms - world_.web().now_ms() < kNearEndMs);
}

Status WatchCourse::bring_path(const hosts::HostPlace& place, const std::string& path) {
  const project::Project project{.root = job_.root, .name = job_.tree, .folder = {}};
  for (const bool dry : {true, false}) {
    project::SyncOptions how;
    how.dry_run = dry;
    if (!dry)
      how.remark = [&](const std::string& text) { tell(fmt::format("{}: {}", path, text)); };
    LOCKSTEP_TRY_ASSIGN(const auto host, project::sync_back(place, project, path, how));
    if (host.code != 0) return fail(Errc::unavailable, host.error, host.hint);
    if (dry) LOCKSTEP_TRY(check_room(job_.root, host.bytes));
    if (!dry)
      tell(fmt::format("{}: {} files, {} are here", path, host.files,
                       project::size_text(host.bytes)));
  }
  return {};
}

// Every place for itself: one that is missing there costs none of the others. The first error.
Status WatchCourse::bring() {
  if (job_.tree.empty() || job_.back.empty()) return {};
  LOCKSTEP_TRY_ASSIGN(const auto hosts, places());
  LOCKSTEP_TRY(io::make_folders(job_.root));
  Status all;
  bool some = false;
  for (const std::string& path : job_.back) {
    Status one = bring_path(hosts.front(), path);
    some = some || one;
    if (one) continue;
    if (one.error().code == Errc::canceled) return one;
    tell(fmt::format("{}: {}", path, one.error().message));
    if (all) all = one;
  }
  if (some)
    LOCKSTEP_TRY(change([&](cloud::RentedJob& job) {
      if (all) job.whole = job_.job;
      return job.brought = true;
    }));
  return all;
}

// What is here twice does no harm; what is nowhere does.
Status WatchCourse::bring_if_hurried() {
  const auto hosts = places();
  if (!hosts) return {};
  if (is_hurried(*hosts)) return bring();
  // Until its command has come, or has not.
  (void)rent::hold_leases(*hosts, 2 * grace_ms() / 1000 + 60);
  return {};
}

// false: it has ended the job, or begun it again, or rents other machines for it: it is at work.
Result<bool> WatchCourse::command_is_gone() {
  const std::string seen = job_.job;
  while (true) {
    if (!refresh() || job_.job != seen || rent::newest_number(rental_) > attempt_) return false;
    if (world_.web().now_ms() - std::max(ended_ms_, job_.heard_ms) >= grace_ms()) return true;
    LOCKSTEP_TRY(pause(std::min(kAWhileMs, grace_ms())));
  }
}

Status WatchCourse::conclude(int code, const std::string& note) {
  tell(fmt::format("the job of '{}' has ended: exit code {}, {}", job_.cluster, code, note));
  return change([&](cloud::RentedJob& job) {
    job.stage = Stage::ended;
    job.code = code;
    job.note = note;
    return true;
  });
}

// From here on its command, should it come back, does nothing for it.
Status WatchCourse::stand_in() {
  bool late = false;
  LOCKSTEP_TRY(change([&](cloud::RentedJob& job) {
    late = job.job != job_.job || job.heard_ms != job_.heard_ms;
    job.taken = job.taken || !late;
    return !late;
  }));
  if (late) return {};
  tell(fmt::format("{}: the command of '{}' is gone; its outputs come here, and its machines go",
                   date_text(world_.web().now_ms()), job_.cluster));
  const int code = code_.value_or(kLostCode);
  const int failed = code == 0 ? 1 : code;
  if (Status brought = bring(); !brought) {
    if (brought.error().code == Errc::canceled) return brought;
    const auto hosts = places();
    const auto held =
        hosts ? rent::hold_leases(*hosts, rental_.terms.hold_s) : Failure(hosts.error());
    return conclude(
        failed, fmt::format("not all of its outputs were brought: {}{}", brought.error().message,
                            held ? "; its machines wait for you" : ""));
  }
  Status locked = world_.locks().take(rental_.cluster);
  for (int tries = 0; !locked && tries < kLockTries; ++tries) {
    LOCKSTEP_TRY(pause(kAWhileMs));
    locked = world_.locks().take(rental_.cluster);
  }
  LOCKSTEP_TRY(locked);
  Status back;
  if (refresh() && !closed_) back = give_machines_back(world_, kWatching, rental_);
  world_.locks().release(rental_.cluster);
  if (!back) return conclude(failed, back.error().message);
  return conclude(code,
                  noticed_ ? "its provider took a machine away" : "its machines are given back");
}

Status WatchCourse::run() {
  const rent::GuardPace pace = rent::guard_pace();
  while (refresh()) {
    if (job_.taken) {
      // Another one of us was at it, and knew how it had ended.
      code_ = job_.code;
      if (closed_ && job_.all_came()) return conclude(job_.code, "its machines are given back");
      return stand_in();
    }
    if (job_.job.empty()) {
      if (closed_) return {};
      LOCKSTEP_TRY(pause(pace.poll_ms));
      continue;
    }
    attempt_ = rent::newest_number(rental_);
    noticed_ = false;
    auto seen = follow();
    if (!seen && seen.error().code == Errc::canceled) return Failure(seen.error());
    if (!seen) tell(seen.error().message);
    if (!seen || *seen == Seen::nothing) {
      LOCKSTEP_TRY(pause(pace.poll_ms));
      continue;
    }
    if (*seen == Seen::left) return {};
    ended_ms_ = world_.web().now_ms();
    if (*seen == Seen::gone) code_.reset();
    if (*seen == Seen::ended)
      if (const Status brought = bring_if_hurried(); !brought)
        tell("its outputs are not here: " + brought.error().message);
    LOCKSTEP_TRY_ASSIGN(const bool gone, command_is_gone());
    if (!gone) continue;
    // Its command may yet go on elsewhere, with what was saved.
    if (*seen == Seen::gone || noticed_ || machines_gone()) {
      const bool whole = *seen == Seen::ended && job_.all_came();
      const int code = code_.value_or(1);
      return conclude(whole ? code : std::max(code, 1),
                      fmt::format("{}{}",
                                  noticed_ ? "its provider took a machine away"
                                           : "its machines were taken away, or have ended",
                                  job_.all_came() ? "" : ", with what was not brought"));
    }
    LOCKSTEP_TRY(change([&](cloud::RentedJob& job) {
      job.code = code_.value_or(kLostCode);
      return true;
    }));
    LOCKSTEP_TRY(stand_in());
  }
  return {};
}

}  // namespace lockstep::cli
