// lockstep follow-rented: takes over a job on rented machines whose command is gone. Started by
// lockstep, not by people.
#include "base/clock_ms.h"
#include "base/date_text.h"
#include "cli/follow_log.h"
#include "cli/guarded.h"
#include "cli/on_demand.h"
#include "cli/rented_course.h"
#include "cli/run_options.h"
#include "cli/watch_course.h"
#include "io/own_folders.h"
#include "proc/signals.h"
#include "rent/job_claim.h"

#include <fmt/core.h>

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <utility>

namespace lockstep::cli {
namespace {

using cloud::RentedJob;

// Returns the rental's unended job; nullopt: there is none.
Result<std::optional<RentedJob>> job_of(cloud::Journal& journal, const std::string& rental) {
  LOCKSTEP_TRY_ASSIGN(auto jobs, journal.jobs());
  for (RentedJob& job : jobs)
    if (job.rental == rental && job.stage != RentedJob::Stage::ended)
      return std::optional<RentedJob>(std::move(job));
  return std::optional<RentedJob>();
}

// Takes the job over. Changes to the job's folder before the environment is read, which may name
// files by relative paths.
Result<ExitCode> go_on_with(const Program& program, RentedJob job, cloud::Rental rental,
                            bool own_environment) {
  FollowLog log(job.cluster);
  // For another host's job the log has the rental's id in its name, so all of it belongs to this
  // job.
  LOCKSTEP_TRY(log.begin(rental.told_ms != 0 ? 0 : rental.created_ms));
  if (rental.told_ms != 0) {
    LOCKSTEP_TRY_ASSIGN(const auto world, rent::OnDemand::open());
    LOCKSTEP_TRY(WatchCourse(*world, std::move(rental), std::move(job)).run());
    return ExitCode::ok;
  }
  tell_line(kRentedRun, fmt::format("{}: '{}' is followed, as its command is gone",
                                    date_text(unix_ms()), job.cluster));
  std::error_code gone;
  std::filesystem::current_path(job.folder, gone);
  if (gone) return fail(Errc::not_found, "its folder is gone: " + job.folder);
  LOCKSTEP_TRY_ASSIGN(const auto world, rent::OnDemand::open());
  LOCKSTEP_TRY(keys_of(*world, rental));
  job.follower = getpid();
  LOCKSTEP_TRY(world->journal().note_job(job));
  const Args words = job.words;
  auto parsed = parse_options(run_table(), words,
                              [](std::string_view) { return std::optional<std::string>(); });
  if (!parsed) return Failure(std::move(parsed).error().error);
  RemoteOptions remote = remote_options(run_table(), *parsed);
  OnDemandOptions options;
  fill(run_table(), *parsed, options);
  remote.follows = true;
  remote.own_environment = own_environment;
  remote.detach = remote.json = false;
  const Call call{program, words, std::move(*parsed)};
  return passed_on(
      RentedCourse(call, remote, options, *world, std::move(rental), std::move(job)).run());
}

Result<ExitCode> follow_rented(const Call& call) {
  const bool foreign = call.words.size() == 2 && call.words.back() == rent::kForeignEnvironment;
  if (call.words.size() != 1 && !foreign)
    return fail(Errc::invalid_input, "it takes the id of a rental");
  const std::string& id = call.words.front();
  LOCKSTEP_TRY_ASSIGN(const io::Fd mine, rent::await_job(id));
  // Block signals only now: until here a signal must end this process while it waits for the job.
  take_signals(Signals::blocked);
  LOCKSTEP_TRY_ASSIGN(auto journal, cloud::Journal::open(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(auto job, job_of(journal, id));
  if (!job) return ExitCode::ok;
  LOCKSTEP_TRY_ASSIGN(auto rentals, journal.open_rentals());
  for (cloud::Rental& rental : rentals)
    if (rental.id == id)
      return go_on_with(call.program, std::move(*job), std::move(rental), !foreign);
  // Nothing was requested yet, or the machines were terminated: the next command reports it.
  return ExitCode::ok;
}

Result<ExitCode> follow_command(const Call& call) {
  signal(SIGPIPE, SIG_IGN);
  // The follower outlives the terminal of the job's command.
  signal(SIGHUP, SIG_IGN);
  const auto code = follow_rented(call);
  return code ? *code : refuse(kRentedRun, code.error(), always(ExitCode::failed));
}

}  // namespace

extern constinit const Subcommand kFollowRented{.name = rent::kFollowCommand,
                                                .summary = "goes on with a job on rented machines",
                                                .run = follow_command,
                                                .signals = Signals::children,
                                                .listed = false};

}  // namespace lockstep::cli
