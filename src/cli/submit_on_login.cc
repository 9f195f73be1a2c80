#include "cli/submit_on_login.h"

#include "base/clock_ms.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/ground.h"
#include "cli/places.h"
#include "cli/subcommand.h"
#include "cli/terminal.h"
#include "codec/json.h"
#include "io/own_folders.h"
#include "jobs/on_slurm/login_submit.h"
#include "jobs/places/find_job.h"
#include "project/sync_tree.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr const char* kProgram = "lockstep submit --on";

// Returns the command for the login host. An absolute path of a script in the project becomes the
// path there. Relative paths need no change: the job has the same folder of the project.
std::vector<std::string> command_there(const std::vector<std::string>& command,
                                       const Ground& ground) {
  std::vector<std::string> words = command;
  const auto script = std::find_if(words.begin(), words.end(),
                                   [](const std::string& word) { return word.starts_with('/'); });
  if (script != words.end()) *script = script_there(*script, ground);
  return words;
}

jobs::on_slurm::LoginRequest request_of(const LoginJob& job, const Ground& ground) {
  jobs::on_slurm::LoginRequest request{.id = job::new_job_id(),
                                       .folder = ground.folder,
                                       .env = job.env,
                                       .preview = job.options.print};
  // A preview is checked on this machine, which has the project's files. A submission answers in
  // JSON, because this client needs the job's number, folder and output.
  if (job.options.print)
    request.words = {"--print", "--no-check"};
  else
    request.words = {"--json"};
  request.words.insert(request.words.end(), job.words.there.begin(), job.words.there.end());
  if (job.words.dashes) request.words.emplace_back("--");
  for (std::string& word : command_there(job.words.command, ground))
    request.words.push_back(std::move(word));
  return request;
}

// Prints the script of the job, and notes about the files and packages that the host would get.
Result<ExitCode> preview(const RemoteOptions& remote, const hosts::HostPlace& place,
                         const Ground& ground, const jobs::on_slurm::LoginRequest& request) {
  if (ground.project) {
    LOCKSTEP_TRY_ASSIGN(
        const auto report,
        project::sync_project({place}, *ground.project, {.force = remote.force, .dry_run = true}));
    const project::HostSync& host = report.hosts.at(0);
    if (!host.error.empty()) return fail(Errc::unavailable, host.error, host.hint);
    std::fprintf(stderr, "%s: note: %s would be synced to %s of %s first: %s\n", kProgram,
                 printable(ground.project->root, 1000).c_str(), printable(host.place, 1000).c_str(),
                 place.name.c_str(), project::summary_of(host, true).c_str());
  }
  if (!remote.install.empty())
    std::fprintf(stderr, "%s: note: would be installed there first: %s\n", kProgram,
                 printable(join(remote.install, ", "), 1000).c_str());
  return jobs::on_slurm::preview_on_login(place, request).map(passed_on);
}

Result<hosts::HostPlace> login_place(const RemoteOptions& remote) {
  LOCKSTEP_TRY_ASSIGN(auto places, places_of(*remote.on, remote.place));
  if (places.size() > 1)
    return fail(Errc::invalid_input,
                fmt::format("{} has {} nodes, but a login host is a single host", *remote.on,
                            places.size()),
                "name the host where you call sbatch, or a cluster added with --slurm");
  return std::move(places.at(0));
}

Result<ExitCode> submit_there(const LoginJob& job, const RemoteOptions& remote,
                              const hosts::HostPlace& place) {
  LOCKSTEP_TRY_ASSIGN(const ChosenEnvironment environment,
                      chosen_environment(remote.environment, remote.install));
  LOCKSTEP_TRY_ASSIGN(const Ground ground, ground_of(remote, false));
  const jobs::on_slurm::LoginRequest request = request_of(job, ground);
  // Before the sync: a host without sbatch must fail at once.
  LOCKSTEP_TRY(jobs::on_slurm::check_login(place));
  if (job.options.print) return preview(remote, place, ground, request);
  // Bring files and packages first: Slurm may start the job in the moment of its submission.
  LOCKSTEP_TRY_ASSIGN(const int unready,
                      make_ready(kProgram, remote, {place}, ground, environment));
  if (unready != 0) return passed_on(unready);
  LOCKSTEP_TRY_ASSIGN(const auto book, jobs::JobBook::open(io::state_folder()));
  jobs::KnownJob known{.id = request.id,
                       .name = job.name,
                       .place = *remote.on,
                       .command = printable(shell_join(job.words.command), 500),
                       .nodes = {place},
                       .created_ms = unix_ms()};
  LOCKSTEP_TRY_ASSIGN(const auto there, jobs::on_slurm::submit_recorded(book, known, request));
  if (there.code != 0) return passed_on(there.code);
  return tell_and_follow(book, known, there, job.options);
}

}  // namespace

Result<ExitCode> tell_and_follow(const jobs::JobBook& book, const jobs::KnownJob& known,
                                 const jobs::on_slurm::SubmittedThere& job,
                                 const SubmitOptions& options) {
  if (options.json)
    std::puts(codec::print_json(nlohmann::ordered_json{{"job", job.job},
                                                       {"id", known.id},
                                                       {"name", job.name},
                                                       {"output", job.output},
                                                       {"folder", job.folder}})
                  .c_str());
  else  // the same line as sbatch, for scripts that read the job's number from sbatch's output
    std::printf("Submitted batch job %s\n", job.job.c_str());
  // A program that reads a pipe needs the job's number now, not at the job's end.
  std::fflush(stdout);
  if (!options.follow && !options.wait) return ExitCode::ok;
  LOCKSTEP_TRY_ASSIGN(
      const auto followed,
      jobs::places::open_job(known)->follow(
          {.print = options.follow, .json = options.json, .fold = folds(options.fold)}));
  if (followed.left) {
    log::warning("job {} goes on; lockstep logs -f {} shows it, lockstep cancel {} ends it",
                 job.job, known.id, known.id);
    return stopped_by(followed.signal);
  }
  LOCKSTEP_TRY(book.note(known.id, followed.status));
  if (followed.status.code) return passed_on(*followed.status.code);
  return fail(Errc::unavailable, "the result of job " + job.job + " is not known");
}

Result<std::optional<ExitCode>> submit_on_login(const LoginJob& job) {
  const RemoteOptions remote = remote_options(submit_table(), job.words.own);
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place, login_place(remote));
  if (place.here) {
    // Refuse --sync and the like: nothing is brought to this machine.
    LOCKSTEP_TRY(ground_of(remote, true));
    return std::optional<ExitCode>();
  }
  const auto code = submit_there(job, remote, place);
  if (code) return std::optional<ExitCode>(*code);
  if (code.error().code != Errc::unavailable) return Failure(code.error());
  // ssh's exit code 255 means an unreachable host, so that scripts see the difference to a refusal.
  return std::optional<ExitCode>(refuse(kProgram, code.error(), kAsSsh));
}

}  // namespace lockstep::cli
