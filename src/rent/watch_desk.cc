#include "rent/watch_desk.h"

#include "io/own_folders.h"
#include "rent/guard_talk.h"
#include "rent/job_claim.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace lockstep::rent {
namespace {

using cloud::RentedJob;
using Stage = RentedJob::Stage;

constexpr int kWatchTries = 200;
constexpr std::chrono::milliseconds kWatchPause{50};
// Outputs that nobody fetches.
constexpr std::int64_t kKeptMs = 30LL * 86'400'000;

std::string watched_folder(const std::string& rental) {
  return io::state_folder() + "/watched/" + rental;
}

void drop_watched(OnDemand& world, const std::string& cluster, const std::string& rental) {
  (void)world.journal().drop_job(rental);
  std::error_code failed;
  std::filesystem::remove_all(watched_folder(rental), failed);
  for (const std::string& log : follow_logs(cluster))
    std::filesystem::remove(log, failed);
}

Result<std::optional<RentedJob>> find_watched(OnDemand& world, const std::string& rental) {
  LOCKSTEP_TRY_ASSIGN(auto jobs, world.journal().jobs());
  for (RentedJob& job : jobs)
    if (job.rental == rental) return std::optional<RentedJob>(std::move(job));
  return std::optional<RentedJob>();
}

Status lock_watched(OnDemand& world, const std::string& rental) {
  Status locked = world.locks().take(rental + ".job");
  for (int tries = 0; !locked && tries < kWatchTries; ++tries) {
    LOCKSTEP_TRY(world.web().pause(kWatchPause));
    locked = world.locks().take(rental + ".job");
  }
  return locked;
}

// What is left of one whose machines are gone, and that nobody sees to.
bool is_abandoned(OnDemand& world, const RentedJob& job) {
  const auto rental = world.journal().of_cluster(job.cluster);
  return !rental && rental.error().code == Errc::not_found && !job_is_claimed(job.rental);
}

WatchAnswer answer_of(OnDemand& world, const std::optional<RentedJob>& job) {
  if (!job) return {};
  WatchAnswer answer{.known = true, .taken = job->taken, .code = job->code, .note = job->note};
  answer.ended = job->stage == Stage::ended;
  answer.whole = job->all_came();
  if (!answer.ended && is_abandoned(world, *job)) {
    answer.ended = true;
    answer.code = 1;
    answer.note = job->job.empty()
                      ? "its machines were terminated before the job began"
                      : "its machines were terminated before the end of the job was seen";
  }
  std::error_code failed;
  const std::vector<std::string> logs = follow_logs(job->cluster);
  for (std::size_t i = 0; i < logs.size(); ++i)
    if (std::filesystem::exists(logs[i], failed))
      answer.log_endings.emplace_back(kFollowLogEndings[i]);
  if (!answer.log_endings.empty()) answer.logs = io::state_folder() + "/rentals";
  if (!job->brought || !std::filesystem::is_directory(job->root, failed)) return answer;
  answer.root = job->root;
  for (const std::string& path : job->back)
    if (std::filesystem::exists(std::filesystem::symlink_status(job->root + "/" + path, failed)))
      answer.back.push_back(path);
  return answer;
}

void drop_old_ones(OnDemand& world) {
  const auto jobs = world.journal().jobs();
  if (!jobs) return;
  for (const RentedJob& job : *jobs) {
    if (world.web().now_ms() - std::max(job.began_ms, job.heard_ms) < kKeptMs ||
        !is_abandoned(world, job))
      continue;
    drop_watched(world, job.cluster, job.rental);
  }
}

// What its command says of it anew. One that is ended from here stays as it is.
Status note_watched(OnDemand& world, const WatchWord& word, const std::optional<RentedJob>& known) {
  if (known && known->taken) return {};
  const std::int64_t now = world.web().now_ms();
  const std::string folder = watched_folder(word.rental);
  LOCKSTEP_TRY(io::make_folders(folder));
  return world.journal().keep_job({.rental = word.rental,
                                   .cluster = name_there(word.cluster, word.rental),
                                   .words = {},
                                   .folder = folder,
                                   .stage = word.job.empty() ? Stage::renting : Stage::working,
                                   .brought = known && known->brought,
                                   .job = word.job,
                                   .began_ms = known ? known->began_ms : now,
                                   .root = folder + "/" + word.tree,
                                   .tree = word.tree,
                                   .back = word.back,
                                   .heard_ms = now,
                                   .whole = known ? known->whole : ""});
}

Status heed(OnDemand& world, const WatchWord& word, const std::optional<RentedJob>& known) {
  switch (word.verb) {
    case WatchVerb::ask:
      return {};
    case WatchVerb::watch:
      return note_watched(world, word, known);
    case WatchVerb::claim: {
      if (!known || known->taken) return {};
      RentedJob heard = *known;
      heard.heard_ms = world.web().now_ms();
      return world.journal().keep_job(heard);
    }
    case WatchVerb::drop:
      // What is here alone waits for who fetches it.
      if (known && (known->taken || (known->stage == Stage::ended && known->brought))) return {};
      break;
    case WatchVerb::fetched:
      break;
  }
  drop_watched(world, name_there(word.cluster, word.rental), word.rental);
  return {};
}

}  // namespace

Result<WatchAnswer> answer_watch(OnDemand& world, const WatchWord& word) {
  LOCKSTEP_TRY(lock_watched(world, word.rental));
  auto answer = [&]() -> Result<WatchAnswer> {
    drop_old_ones(world);
    LOCKSTEP_TRY_ASSIGN(const auto known, find_watched(world, word.rental));
    LOCKSTEP_TRY(heed(world, word, known));
    // As it was found: who has just been heard goes on, whatever was thought of it.
    return answer_of(world, known);
  }();
  world.locks().release(word.rental + ".job");
  return answer;
}

Result<std::optional<RentedJob>> change_watched(OnDemand& world, const std::string& rental,
                                                const std::function<bool(RentedJob&)>& change) {
  LOCKSTEP_TRY(lock_watched(world, rental));
  auto changed = [&]() -> Result<std::optional<RentedJob>> {
    LOCKSTEP_TRY_ASSIGN(auto job, find_watched(world, rental));
    if (job && change(*job)) LOCKSTEP_TRY(world.journal().keep_job(*job));
    return job;
  }();
  world.locks().release(rental + ".job");
  return changed;
}

bool is_taken(OnDemand& world, const std::string& rental, bool at_work) {
  const auto job = change_watched(world, rental, [&](RentedJob& one) {
    if (one.taken || !at_work) return false;
    one.heard_ms = world.web().now_ms();
    return true;
  });
  return job && *job && (*job)->taken;
}

}  // namespace lockstep::rent
