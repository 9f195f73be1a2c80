#include "cli/owned_job.h"

#include "base/id.h"
#include "base/text.h"
#include "cli/ground.h"
#include "cli/on_demand.h"
#include "cli/owner_host.h"
#include "cli/rented_course.h"
#include "cli/run_options.h"
#include "cli/terminal.h"
#include "hosts/variables.h"
#include "jobs/rented/owner_ask.h"
#include "jobs/rented/owner_words.h"
#include "proc/signal_watch.h"
#include "rent/command_rental.h"
#include "rent/guard_hosts.h"
#include "rent/job_claim.h"
#include "rent/rented_cluster.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace lockstep::cli {
namespace {

using cloud::RentedJob;
using jobs::rented::OwnerRequest;

// Returns 20 hexadecimal digits: 19 of them random.
std::string new_rental_id() {
  std::string id = random_uuid4();
  std::erase(id, '-');
  return id.substr(0, 20);
}

// Returns the path of a file, given relative to the root, from the working directory there.
std::string from_folder(const project::Project& project, const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path from = project.folder.empty() ? "." : project.folder;
  return fs::path(path.empty() ? "." : path).lexically_relative(from).string();
}

// Replaces the options of variables: a value that is typed stays in the words, as in the journal of
// a job that this machine owns, and any other value leaves them.
Status add_variables(const RemoteOptions& remote, OwnerRequest& request) {
  const VariableOptions& given = remote.variables;
  LOCKSTEP_TRY_ASSIGN(
      const auto all,
      hosts::variables_of({.env = given.env, .files = given.env_files, .secrets = given.secrets},
                          hosts::own_variable));
  const auto has = [](const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  for (const std::string& each : all) {
    const std::string name = each.substr(0, each.find('='));
    const bool secret = has(given.secrets, name);
    const bool typed = !secret && has(given.env, each);
    request.words.push_back(fmt::format("--{}={}", secret ? "secret" : "env", typed ? each : name));
    if (!typed) request.variables[name] = each.substr(name.size() + 1);
  }
  const std::size_t bytes = jobs::rented::kept_request_text(request).size();
  if (bytes <= jobs::rented::kMostKept) return {};
  return fail(Errc::invalid_input,
              fmt::format("--guard HOST takes {} bytes of variables at most, and these are {}",
                          jobs::rented::kMostKept, bytes),
              "put long values into a file of the project");
}

// Adds the options that name files of the project. The host has the project at another place.
Status add_paths(const Call& call, const RemoteOptions& remote, const Ground& ground,
                 OwnerRequest& request, RentedJob& job) {
  if (!ground.project) {
    request.words.emplace_back("--sync=none");
    if (!remote.folder) request.words.push_back("--cwd=" + ground.folder);
    return {};
  }
  const project::Project& project = *ground.project;
  job.root = project.root;
  job.tree = project.name;
  request.folder = project.name + (project.folder.empty() ? "" : "/" + project.folder);
  request.words.push_back(fmt::format("--sync={}:{}", from_folder(project, ""), project.name));
  for (const std::string& path : remote.back) {
    LOCKSTEP_TRY_ASSIGN(std::string below, project::path_in_project(project, path));
    request.words.push_back("--back=" + from_folder(project, below));
    job.back.push_back(std::move(below));
  }
  const auto report = call.parsed.text("report");
  if (!report) return {};
  auto below = project::path_in_project(project, *report);
  if (!below) return Failure(std::move(below).error().within("--report with --guard HOST"));
  request.words.push_back("--report=" + from_folder(project, *below));
  job.back.push_back(std::move(*below));
  return {};
}

// Fills the request to the host, and what the record here needs.
Status describe(const Call& call, const RemoteOptions& remote, const Ground& ground,
                OwnerRequest& request, RentedJob& job) {
  request.words = {"--guard=here", "--yes", "--name=" + request.cluster};
  const bool fold = folds(call.parsed.text("fold").value_or("auto"));
  request.words.push_back(fmt::format("--fold={}", fold ? "always" : "never"));
  LOCKSTEP_TRY(add_variables(remote, request));
  LOCKSTEP_TRY(add_paths(call, remote, ground, request, job));
  Parsed parsed = call.parsed;
  parsed.script = script_there(parsed.script.value_or(""), ground);
  const Args rest = all_words(run_table(), parsed,
                              {"guard", "yes", "name", "fold", "env", "env-file", "secret", "sync",
                               "back", "report", "detach", "json", "print"});
  request.words.insert(request.words.end(), rest.begin(), rest.end());
  return {};
}

// Returns "train.py --lr 0.1", for `lockstep jobs`.
std::string command_text(const Parsed& parsed) {
  Args command = {parsed.script.value_or("")};
  command.insert(command.end(), parsed.script_args.begin(), parsed.script_args.end());
  return printable(shell_join(command), 500);
}

// Shows the plan that the host has made, and asks the user here.
Status show_plan(rent::OnDemand& world, const RemoteOptions& remote, const OnDemandOptions& options,
                 OwnerRequest request) {
  request.variables.clear();
  request.words.insert(request.words.begin(), "--print");
  const bool json = remote.json && options.print;
  if (json) request.words.insert(request.words.begin(), "--json");
  LOCKSTEP_TRY_ASSIGN(
      const std::string plan,
      jobs::rented::ask_owner(*options.guard, {"plan"}, jobs::rented::owner_request_text(request)));
  std::fputs(jobs::rented::printable_lines(plan).c_str(), options.print ? stdout : stderr);
  if (options.print) return {};
  return consent(world, options);
}

Status bring_project(const RemoteOptions& remote, const std::string& host, const Ground& ground) {
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place, rent::GuardHosts::place_of(host));
  RemoteOptions files = remote;
  files.install.clear();  // the course installs packages on the machines
  LOCKSTEP_TRY_ASSIGN(const int unready, make_ready(kRentedRun, files, {place}, ground, {}));
  if (unready == 0) return {};
  return fail(Errc::unavailable,
              fmt::format("the project is not on {}, and nothing is rented", host));
}

// Returns canceled if the user has stopped this command. A host may finish its work before the
// signal reaches the host's command, so the host's answer does not tell.
Status check_stop() {
  const int signal = proc::SignalWatch::take_stop();
  if (signal == 0) return {};
  return Failure(Error{Errc::canceled, "stopped by the user", {}, signal});
}

// Begins the job. If the answer was lost, the record stays: the host may still begin the job.
// Returns the signal that came meanwhile; 0: none.
Result<int> begin(cloud::Journal& journal, RentedJob& job, const OwnerRequest& request) {
  using jobs::rented::Asked;
  using jobs::rented::FailedBegin;
  Asked asked{};
  const auto begun = jobs::rented::ask_owner(job.host, {"begin"},
                                             jobs::rented::owner_request_text(request), &asked);
  if (begun) {
    job.stage = RentedJob::Stage::working;
    LOCKSTEP_TRY(journal.note_job(job));
    return proc::SignalWatch::take_stop();
  }
  Error error = begun.error();
  std::optional<bool> known;
  if (asked == Asked::ended && error.sys != 0)
    if (const auto there = jobs::rented::state_of_owned(job)) known = there->known;
  switch (jobs::rented::after_failed_begin(error, asked, known)) {
    case FailedBegin::cancel:
      return error.sys;
    case FailedBegin::forget:
      (void)journal.drop_job(job.rental);
      if (error.code == Errc::canceled)
        error.message =
            fmt::format("'{}' is canceled: it has not begun, and nothing is rented", job.cluster);
      break;
    case FailedBegin::keep:
      error.hint =
          fmt::format("{} may have begun the job; lockstep logs -f {} asks", job.host, job.cluster);
  }
  return Failure(std::move(error));
}

// Shows the job, and returns its exit code, or 128 + N after signal N.
Result<ExitCode> view_owned(cloud::Journal& journal, const RentedJob& job,
                            const jobs::rented::OwnedShow& show) {
  LOCKSTEP_TRY_ASSIGN(const auto shown,
                      jobs::rented::show_owned(journal, owned_world(kRentedRun), job, show, true));
  if (shown.signal != 0) return stopped_by(shown.signal);
  if (shown.code) return passed_on(*shown.code);
  // Only the job's own record says that the job has succeeded.
  const bool succeeded = shown.view_code == 0 && !show.how.starts_with("start");
  return succeeded ? ExitCode::not_reached : passed_on(shown.view_code);
}

// Ends a job that the user has canceled while it began.
Result<ExitCode> cancel_begun(cloud::Journal& journal, const RentedJob& job, int signal) {
  LOCKSTEP_TRY_ASSIGN(const ExitCode code,
                      view_owned(journal, job, {.cancels = true, .met = true}));
  if (code == ExitCode::ok || journal.has_job(job.rental).value_or(true)) return code;
  tell_line(kRentedRun,
            fmt::format("'{}' is canceled, and its machines are terminated", job.cluster));
  return stopped_by(signal);
}

}  // namespace

Result<ExitCode> run_at_owner(const Call& call, const RemoteOptions& remote,
                              const OnDemandOptions& options, rent::OnDemand& world,
                              const std::string& cluster) {
  LOCKSTEP_TRY_ASSIGN(const cloud::Wish wish, wish_of(options, remote.place.nodes));
  LOCKSTEP_TRY_ASSIGN(const cloud::Terms terms, terms_of(options));
  LOCKSTEP_TRY(check_consent(options, terms, wish));
  LOCKSTEP_TRY(rent::check_name(cluster));
  LOCKSTEP_TRY(rent::check_not_owned_elsewhere(world.journal(), cluster));
  LOCKSTEP_TRY_ASSIGN(const Ground ground, ground_of(remote, false));
  OwnerRequest request{.rental = new_rental_id(),
                       .cluster = cluster,
                       .client = world.owner(),
                       .folder = {},
                       .words = {}};
  std::error_code error;
  RentedJob job{.rental = request.rental,
                .cluster = cluster,
                .words = {},
                .folder = std::filesystem::current_path(error),
                .note = command_text(call.parsed),
                .host = *options.guard};
  LOCKSTEP_TRY(describe(call, remote, ground, request, job));
  LOCKSTEP_TRY(show_plan(world, remote, options, request));
  if (options.print) return ExitCode::ok;
  LOCKSTEP_TRY(bring_project(remote, job.host, ground));
  LOCKSTEP_TRY(check_stop());
  LOCKSTEP_TRY_ASSIGN(const io::Fd mine, rent::claim_job(job.rental));
  // Before the host is told: a job that has begun there must be known here. A lost begin is awaited
  // for some time from now on: the question and the upload may have taken long.
  job.began_ms = world.web().now_ms();
  LOCKSTEP_TRY(world.journal().keep_job(job));
  LOCKSTEP_TRY_ASSIGN(const int signal, begin(world.journal(), job, request));
  if (jobs::rented::is_cancel(signal)) return cancel_begun(world.journal(), job, signal);
  if (signal != 0)  // a closed terminal
    return Failure(Error{Errc::canceled, fmt::format("'{}' goes on at {}", cluster, job.host),
                         "lockstep logs -f " + cluster + " shows it", signal});
  const char* how = !remote.detach ? "all" : remote.json ? "start-json" : "start";
  return view_owned(world.journal(), job, {.how = how, .met = true});
}

}  // namespace lockstep::cli
