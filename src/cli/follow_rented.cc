// lockstep follow-rented: the background process with the course of a job on rented machines.
// Started by lockstep, not by people: by the job's command before its first launch, or by the guard
// if that process is gone.
#include "base/clock_ms.h"
#include "base/date_text.h"
#include "cli/guarded.h"
#include "cli/on_demand.h"
#include "cli/rented_course.h"
#include "cli/run_options.h"
#include "cli/transfer_bar.h"
#include "io/loop.h"
#include "io/own_folders.h"
#include "jobs/rented/course_driver.h"
#include "jobs/rented/course_log.h"
#include "jobs/rented/owner_talk.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"
#include "rent/job_claim.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
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

// Notes the end of a job whose machines are gone. An earlier process of the course may have noted
// the exit code before it died.
Result<ExitCode> note_unseen_end(cloud::Journal& journal, RentedJob job) {
  LOCKSTEP_TRY_ASSIGN(const auto rentals, journal.since(job.began_ms));
  const bool rented = std::any_of(rentals.begin(), rentals.end(),
                                  [&](const auto& rental) { return rental.id == job.rental; });
  // The command was killed before anything was requested: there is nothing to tell.
  if (!rented) {
    LOCKSTEP_TRY(journal.drop_job(job.rental));
    return ExitCode::failed;
  }
  cloud::end_unseen(job, "its machines are gone; how it ended is not known");
  job.stage = RentedJob::Stage::ended;
  LOCKSTEP_TRY(journal.note_job(job));
  return passed_on(job.code);
}

// Returns once the job's command hands the job over (true), or is gone (false). canceled: a signal
// asked this process to end. The handled signals must be blocked.
Result<bool> await_command() {
  io::Loop loop;
  std::optional<bool> handed_over;
  int signal = 0;
  LOCKSTEP_TRY_ASSIGN(const auto signals, proc::SignalWatch::open(loop, [&](int number) {
                        if (number != SIGINT && number != SIGTERM && number != SIGQUIT) return;
                        signal = number;
                        loop.stop();
                      }));
  io::Watch command(loop, STDIN_FILENO);
  command.start(io::kReadable, [&](int) {
    char byte = 0;
    // A byte hands the job over. At the end of file the command is gone.
    handed_over = read(STDIN_FILENO, &byte, 1) == 1;
    loop.stop();
  });
  loop.run();
  if (handed_over) return *handed_over;
  return Failure(Error{Errc::canceled, "asked to end", {}, signal});
}

// The starter of this process. Only a command hands its environment and its terminal over.
enum class Origin {
  handed_over,  // the command, which views the job
  left,         // the command, which is gone
  guard,        // the guard, in another environment than the command's
};

// Takes the client's variables out of the environment, because children of this process must not
// inherit them. nullopt: no client elsewhere began the job.
std::optional<std::map<std::string, std::string>> take_variables() {
  const char* text = std::getenv(jobs::rented::kRequestVariable);
  const auto request = jobs::rented::read_owner_request(text == nullptr ? "" : text);
  unsetenv(jobs::rented::kRequestVariable);
  return request ? std::optional(request->variables) : std::nullopt;
}

// Runs the course of the job until it ends or is left. Changes to the job's folder before the
// environment is read, which may name files by relative paths.
Result<ExitCode> run_course(const Program& program, RentedJob job, cloud::Rental rental,
                            Origin origin) {
  std::error_code gone;
  std::filesystem::current_path(job.folder, gone);
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
  remote.as_received = !job.client.empty();
  if (const auto given = take_variables())
    remote.own_variable = [given](const std::string& name) {
      const auto found = given->find(name);
      return found == given->end() ? std::nullopt : std::optional(found->second);
    };
  // A job that runs already is followed all the same, and its machines are terminated.
  std::optional<Error> cannot_begin;
  if (gone)
    cannot_begin = Error{Errc::not_found, "the folder of the job is gone: " + job.folder, {}, 0};
  else if (origin == Origin::guard)
    cannot_begin = jobs::rented::lost_variables(remote.variables.secrets, remote.variables.env);
  remote.detach = remote.json = false;
  const Call call{program, words, std::move(*parsed)};
  LOCKSTEP_TRY_ASSIGN(const int code,
                      run_rented_course(call, std::move(remote), options, *world, std::move(rental),
                                        std::move(job), std::move(cannot_begin)));
  return passed_on(code);
}

// Takes the job over: all output goes into the log of its course from here on.
Result<ExitCode> go_on_with(const Program& program, RentedJob job, cloud::Rental rental,
                            Origin origin) {
  jobs::rented::CourseLog log(job.cluster);
  LOCKSTEP_TRY(log.begin(rental.created_ms));
  TransferBar::send_to([&log](std::uint64_t bytes, std::uint64_t of) {
    if (bytes == 0 && of == 0) return log.show({});
    log.show(jobs::rented::Progress{bytes, of});
  });
  if (origin != Origin::handed_over)
    tell_line(kRentedRun, fmt::format("{}: '{}' is followed, as its command is gone",
                                      date_text(unix_ms()), job.cluster));
  const auto code = run_course(program, std::move(job), std::move(rental), origin);
  // Print the error while the log takes it.
  return code ? *code : refuse(kRentedRun, code.error(), always(ExitCode::failed));
}

Result<ExitCode> follow_rented(const Call& call) {
  const bool shared = call.words.size() == 2 && call.words.back() == rent::kSharedClaim;
  const bool foreign = call.words.size() == 2 && call.words.back() == rent::kForeignEnvironment;
  if (!shared && !foreign)
    return fail(Errc::invalid_input, "it takes the id of a rental, and how it was started");
  const std::string& id = call.words.front();
  Origin origin = Origin::guard;
  io::Fd claim;
  if (shared) {
    claim = io::Fd(rent::kClaimDescriptor);
    // Children of the course must not keep the claim.
    if (fcntl(claim.get(), F_SETFD, FD_CLOEXEC) != 0) return fail_sys("the claim", errno);
    take_signals(Signals::blocked);
    LOCKSTEP_TRY_ASSIGN(const bool handed_over, await_command());
    origin = handed_over ? Origin::handed_over : Origin::left;
  } else {
    LOCKSTEP_TRY_ASSIGN(claim, rent::await_job(id));
    // Block signals only now: until here a signal must end this process while it waits for the job.
    take_signals(Signals::blocked);
  }
  LOCKSTEP_TRY_ASSIGN(auto journal, cloud::Journal::open(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(auto job, job_of(journal, id));
  // The command was refused, or the user said no: then no terminal waits for this process.
  if (!job && origin != Origin::handed_over) return ExitCode::ok;
  if (!job) return fail(Errc::unavailable, "the job was ended by lockstep down");
  LOCKSTEP_TRY_ASSIGN(auto rentals, journal.open_rentals());
  for (cloud::Rental& rental : rentals)
    if (rental.id == id)
      return go_on_with(call.program, std::move(*job), std::move(rental), origin);
  // The machines were terminated, or never requested. The next command reports the end.
  if (origin == Origin::guard) return ExitCode::ok;
  return note_unseen_end(journal, std::move(*job));
}

Result<ExitCode> follow_command(const Call& call) {
  // The process outlives the terminal of the job's command.
  signal(SIGHUP, SIG_IGN);
  const auto code = follow_rented(call);
  return code ? *code : refuse(kRentedRun, code.error(), always(ExitCode::failed));
}

}  // namespace

extern constinit const Subcommand kFollowRented{
    .name = rent::kFollowCommand,
    .summary = "runs the course of a job on rented machines",
    .run = follow_command,
    .signals = Signals::children,
    .listed = false};

}  // namespace lockstep::cli
