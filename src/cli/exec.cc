// lockstep exec: runs a command on hosts over SSH.
#include "base/log.h"
#include "base/text.h"
#include "cli/exec_json.h"
#include "cli/exec_options.h"
#include "cli/owner_host.h"
#include "cli/places.h"
#include "cli/subcommand.h"
#include "hosts/command_run.h"
#include "hosts/registry.h"
#include "hosts/variables.h"
#include "io/own_folders.h"
#include "job/enter_job.h"
#include "job/job_spec.h"
#include "jobs/here/local_job.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "jobs/places/find_job.h"
#include "slurm/job_report.h"

#include <fmt/core.h>

#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

// Finds the job that the word names exactly. A job's name is not asked for: the same word may be
// the name of a host. nullopt: the word is a cluster or a host.
Result<std::optional<jobs::KnownJob>> find_named_job(const std::string& word) {
  const bool may_be_job =
      jobs::here::is_local_id(word) || job::is_job_id(word) || slurm::is_job_id(word);
  if (!may_be_job) return std::nullopt;
  LOCKSTEP_TRY_ASSIGN(const auto registry, hosts::Registry::open(io::state_folder()));
  if (registry.find(word)) return std::nullopt;
  LOCKSTEP_TRY_ASSIGN(const auto owned, find_owned(word));
  if (owned && owned->cluster != word) LOCKSTEP_TRY(refuse_owned(word, "its ranks", "exec"));
  LOCKSTEP_TRY_ASSIGN(const auto book, jobs::JobBook::open_to_look(io::state_folder()));
  auto found = jobs::places::find_job(book, word);
  if (!found && !jobs::here::is_local_id(word)) return std::nullopt;
  if (!found) return Failure(found.error());
  const bool is_exact =
      found->id == word || (slurm::is_job_id(word) && jobs::on_slurm::slurm_place(*found));
  return is_exact ? std::optional(std::move(*found)) : std::nullopt;
}

// Lets the hosts of the job run the command in the job.
Status aim_at_job(const jobs::KnownJob& job, const ExecOptions& options,
                  hosts::CommandRequest& request) {
  const PlaceOptions& places = options.places;
  if (options.in_project || places.user || places.key_path || places.jump)
    return fail(Errc::invalid_input,
                fmt::format("{} is a job, which has its own hosts and environment",
                            printable(options.where)),
                "leave out --in-project, --user, --key-path and --jump");
  const bool on_slurm = jobs::on_slurm::slurm_place(job).has_value();
  if (places.nodes && (on_slurm || job.nodes.empty()))
    return fail(Errc::invalid_input, "--nodes chooses nodes of a cluster, or of a job on hosts");
  LOCKSTEP_TRY_ASSIGN(const auto chosen,
                      hosts::parse_node_numbers(places.nodes.value_or("all"), job.nodes.size()));
  for (const std::size_t node : chosen)
    request.hosts.push_back(job.nodes[node]);
  if (job.nodes.empty())
    request.hosts.push_back({.name = std::string(hosts::kHere), .target = {}, .here = true});
  std::vector<std::string> names;
  for (const std::string& entry : request.env)
    names.push_back(entry.substr(0, entry.find('=')));
  request.argv = job::enter_words({.job = job.id,
                                   .folder = options.folder.value_or(""),
                                   .named = std::move(names),
                                   .command = options.command});
  request.argv.insert(request.argv.begin(), "host-enter");
  request.own_binary = true;
  return {};
}

Status aim_at_hosts(const ExecOptions& options, hosts::CommandRequest& request) {
  LOCKSTEP_TRY_ASSIGN(request.hosts, places_of(options.where, options.places));
  request.argv = options.command;
  // `lockstep in-project COMMAND` on the host sets the environment and becomes the command.
  if (options.in_project) {
    request.argv.insert(request.argv.begin(), "in-project");
    request.own_binary = true;
  }
  request.folder = options.folder.value_or("");
  return {};
}

Result<ExitCode> exec_command(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(const ExecOptions options, exec_options(call.words, call.parsed));
  hosts::CommandRequest request;
  LOCKSTEP_TRY_ASSIGN(request.env, hosts::variables_of({.env = options.variables.env,
                                                        .files = options.variables.env_files,
                                                        .secrets = options.variables.secrets},
                                                       hosts::own_variable));
  LOCKSTEP_TRY_ASSIGN(const auto job, find_named_job(options.where));
  LOCKSTEP_TRY(job ? aim_at_job(*job, options, request) : aim_at_hosts(options, request));
  if (options.no_input) request.input = hosts::CommandRequest::Input::none;
  if (options.json) request.output = hosts::CommandRequest::Output::keep;
  LOCKSTEP_TRY_ASSIGN(const auto endings, hosts::run_command(request));
  if (options.json) {
    std::puts(codec::print_json(exec_json(request.hosts, endings)).c_str());
    return passed_on(hosts::code_of(endings));
  }
  // The command's output has been printed as it came. Only errors of hosts are left to print.
  for (const hosts::HostEnding& ending : endings)
    if (!ending.error.empty())
      print_error(
          exec_table().program,
          {Errc::unavailable, ending.error,
           passed_on(ending.code) == ExitCode::not_found ? shell_hint(options) : std::string(), 0});
  return passed_on(hosts::code_of(endings));
}

}  // namespace

extern constinit const Subcommand kExec{.name = "exec",
                                        .summary = "run a command on hosts over SSH",
                                        .table = exec_table,
                                        .run = exec_command,
                                        .signals = Signals::blocked,
                                        .fails_with = kAsSsh};

}  // namespace lockstep::cli
