#include "cli/remote_run.h"

#include "base/clock_ms.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/places.h"
#include "cli/run_options.h"
#include "cli/transfer_bar.h"
#include "cluster/command_run.h"
#include "cluster/install.h"
#include "cluster/job_book.h"
#include "cluster/job_follow.h"
#include "cluster/job_plan.h"
#include "cluster/job_start.h"
#include "cluster/project.h"
#include "cluster/sync_tree.h"
#include "cluster/variables.h"
#include "host/identity.h"
#include "io/fd.h"
#include "io/own_folders.h"

#include <fmt/core.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr const char* kProgram = "lockstep run --on";
constexpr int kBadInput = 2;
constexpr int kFailed = 255;  // as ssh has it: nothing runs

bool gave_any(const Parsed& parsed, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return parsed.has(name); });
}

// "--name" of the first of these that was given; empty: none was.
std::string first_given(const Parsed& parsed, const std::vector<Option>& options) {
  for (const Option& option : options)
    if (parsed.has(option.name)) return "--" + std::string(option.name);
  return {};
}

// Where the job runs there, and what is brought.
struct Ground {
  std::optional<cluster::Project> project;  // nullopt: nothing is brought
  std::string folder;                       // there
};

Result<Ground> ground_of(const RemoteOptions& options, bool here) {
  std::error_code error;
  const std::string own = std::filesystem::current_path(error);
  if (error) return fail(Errc::not_found, "the folder that this runs in is gone");
  Ground ground;
  if (here) {
    if ((options.sync && *options.sync != "none") || !options.install.empty())
      return fail(Errc::invalid_input, "on this machine nothing is brought or installed",
                  "leave --sync and --install out");
    ground.folder = options.folder.value_or(own);
    return ground;
  }
  const bool brings = options.sync != "none";
  auto project = cluster::find_project(own, brings ? options.sync : std::nullopt);
  if (!project && (brings || !options.folder)) return Failure(project.error());
  if (project)
    ground.folder = project->name + (project->folder.empty() ? "" : "/" + project->folder);
  if (options.folder) ground.folder = *options.folder;
  if (brings) ground.project = std::move(*project);
  return ground;
}

// A script that lies in the project is named as it lies there.
std::string script_there(const std::string& script, const Ground& ground) {
  if (!script.starts_with('/') || !ground.project) return script;
  std::error_code error;
  const auto relative = std::filesystem::relative(
      script, std::filesystem::path(ground.project->root) / ground.project->folder, error);
  const auto in_root = std::filesystem::relative(script, ground.project->root, error);
  return error || in_root.native().starts_with("..") ? script : relative.string();
}

std::string name_of(const RemoteOptions& options, const Parsed& parsed) {
  if (options.name) return *options.name;
  return std::filesystem::path(parsed.script.value_or("")).filename();
}

bool meets_elsewhere(const Parsed& parsed) {
  return gave_any(parsed, {"rdzv-endpoint", "master-addr", "master-port", "standalone"});
}

// Says what went wrong on each host; the first exit code that is not 0.
template <class Hosts>
int tell_troubles(const Hosts& hosts) {
  int code = 0;
  for (const auto& host : hosts) {
    if (!host.error.empty()) print_error(kProgram, {Errc::unavailable, host.error, host.hint, 0});
    if (code == 0) code = host.code;
  }
  return code;
}

// Before anything starts. The exit code: not 0 where a host is not ready.
Result<int> make_ready(const RemoteOptions& options, const std::vector<cluster::HostPlace>& places,
                       const Ground& ground, const ChosenEnvironment& environment) {
  if (ground.project) {
    TransferBar bar(true);
    cluster::SyncOptions settings;
    settings.remark = [&bar](const std::string& text) {
      bar.clear();
      log::warning("{}", text);
    };
    settings.progress = [&bar](std::uint64_t bytes, std::uint64_t of) { bar.draw(bytes, of); };
    LOCKSTEP_TRY_ASSIGN(const auto report,
                        cluster::sync_project(places, *ground.project, settings));
    if (const int code = tell_troubles(report.hosts); code != 0) return code;
  }
  if (options.install.empty()) return 0;
  if (!ground.project)
    return fail(Errc::invalid_input, "--install is for a project, and --sync none brings none",
                "leave --sync none out, or use lockstep install");
  LOCKSTEP_TRY_ASSIGN(const auto installs, cluster::install_packages(places, *ground.project,
                                                                     {.specs = options.install,
                                                                      .choice = environment.choice,
                                                                      .place = environment.place}));
  return tell_troubles(installs);
}

// What each node's `lockstep run` is told beside what the user wrote.
std::vector<std::vector<std::string>> words_of_nodes(const cluster::JobRequest& request,
                                                     const Parsed& parsed) {
  const std::size_t count = request.hosts.size();
  std::vector<std::vector<std::string>> words(count);
  const bool plain =
      count == 1 && (!parsed.has("nproc-per-node") || parsed.text("nproc-per-node") == "1");
  const bool own_logs =
      gave_any(parsed, {"tee", "redirects", "log-prefix", "log-line-prefix-template"});
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::string>& own = words[i];
    if (!plain && !own_logs) {
      own.emplace_back("--tee=3");
      own.push_back(std::string("--log-line-prefix-template=") + cluster::kRankTemplate);
    }
    if (request.hosts[i].slots && !parsed.has("nproc-per-node"))
      own.push_back(fmt::format("--nproc-per-node={}", *request.hosts[i].slots));
    if (count == 1) continue;
    if (!parsed.has("nnodes")) own.push_back(fmt::format("--nnodes={}", count));
    if (!parsed.has("rdzv-id")) own.push_back("--rdzv-id=" + request.spec.id);
    if (request.needs_endpoint) own.push_back(fmt::format("--node-rank={}", i));
    // All nodes know the same failure: it is told once.
    if (i > 0 && !parsed.has("report-tails")) own.emplace_back("--report-tails=none");
  }
  return words;
}

Result<cluster::JobRequest> request_of(const Call& call, const RemoteOptions& options,
                                       std::vector<cluster::HostPlace> places,
                                       const Ground& ground) {
  Parsed parsed = call.parsed;
  parsed.script = script_there(parsed.script.value_or(""), ground);
  cluster::JobRequest request;
  request.hosts = std::move(places);
  job::JobSpec& spec = request.spec;
  spec.id = job::new_job_id();
  spec.name = name_of(options, parsed);
  spec.run = run_words(run_table(), parsed, {"report", "explain", "print-completion"});
  spec.folder = ground.folder;
  spec.client = fmt::format("{}@{}", geteuid(), host::hostname());
  spec.created_ms = unix_ms();
  spec.queue = options.queue;
  LOCKSTEP_TRY_ASSIGN(spec.env, cluster::variables_of({.env = options.variables.env,
                                                       .files = options.variables.env_files,
                                                       .secrets = options.variables.secrets},
                                                      cluster::own_variable));
  request.needs_endpoint = request.hosts.size() > 1 && !meets_elsewhere(parsed);
  if (request.needs_endpoint && !parsed.has("rdzv-token-file"))
    spec.env.push_back(std::string(cluster::kTokenVariable) + "=" + random_uuid4() +
                       random_uuid4());
  request.words = words_of_nodes(request, parsed);
  return request;
}

cluster::KnownJob known_job(const cluster::JobRequest& request, const RemoteOptions& options,
                            const Parsed& parsed) {
  std::vector<std::string> command = {parsed.script.value_or("")};
  command.insert(command.end(), parsed.script_args.begin(), parsed.script_args.end());
  return {.id = request.spec.id,
          .name = request.spec.name,
          .place = *options.on,
          .command = printable(shell_join(command), 500),
          .nodes = request.hosts,
          .created_ms = request.spec.created_ms,
          .stage = job::Stage::prepared};
}

int refuse(const Error& error) {
  print_error(kProgram, error);
  if (error.code == Errc::canceled && error.sys > 0) return 128 + error.sys;
  return error.code == Errc::invalid_input ? kBadInput : kFailed;
}

// Written before the job begins: a client that is killed meanwhile leaves nothing that is unknown.
Status start(const cluster::JobBook& book, const cluster::JobRequest& request,
             const cluster::KnownJob& job) {
  LOCKSTEP_TRY(book.add(job));
  const auto started = cluster::start_job(request);
  if (!started) {
    LOCKSTEP_TRY(book.remove(job.id));
    return Failure(started.error());
  }
  LOCKSTEP_TRY(book.note_plan(job.id, cluster::plan_text(request, *started)));
  const bool waits = !started->ahead.empty();
  if (waits) log::warning("job {} waits for {}", job.id, join(started->ahead, ", "));
  return book.note(job.id, waits ? job::Stage::queued : job::Stage::running, 0, 0);
}

// The report of the first node that has one, into the file that the user named here.
Status bring_report(const cluster::KnownJob& job, const std::string& path) {
  LOCKSTEP_TRY_ASSIGN(const auto endings,
                      cluster::run_command({.hosts = job.nodes,
                                            .argv = {"host-job", "report", job.id},
                                            .own_binary = true,
                                            .input = cluster::CommandRequest::Input::none,
                                            .output = cluster::CommandRequest::Output::keep}));
  for (const cluster::HostEnding& ending : endings)
    if (ending.code == 0 && !ending.out.empty()) return io::write_file(path, ending.out);
  return fail(Errc::not_found, "no host has a report of the job");
}

int follow(const cluster::JobBook& book, const cluster::KnownJob& job,
           const std::optional<std::string>& report) {
  const auto outcome =
      cluster::follow_job({.job = job, .on_stop = cluster::FollowRequest::OnStop::cancel});
  if (!outcome) return refuse(outcome.error());
  if (outcome->left) {
    log::warning("job {} goes on; lockstep logs -f {} shows it, lockstep cancel {} ends it", job.id,
                 job.id, job.id);
    return 128 + outcome->signal;
  }
  const cluster::JobEnding ending = cluster::ending_of(outcome->nodes);
  for (std::size_t i = 0; i < outcome->nodes.size(); ++i)
    if (outcome->nodes[i] && outcome->nodes[i]->state.stage == job::Stage::lost)
      log::warning("{}: the job's supervisor was killed there", job.nodes[i].name);
  if (const Status noted = book.note(job.id, ending.stage, ending.code, ending.ended_ms); !noted)
    log::warning("{}", noted.error().message);
  if (report)
    if (const Status brought = bring_report(job, *report); !brought)
      log::error("--report {}: {}", *report, brought.error().message);
  return ending.stage == job::Stage::lost ? kFailed : ending.code;
}

Result<int> run_there(const Call& call, const RemoteOptions& options) {
  if (call.parsed.has("explain"))
    return fail(Errc::invalid_input,
                "--explain is of a run on this machine, and --on runs elsewhere",
                "leave one of them out");
  if (options.detach && call.parsed.has("report"))
    return fail(Errc::invalid_input,
                "--report is written at the job's end, and --detach does not wait for it",
                "every host keeps it, as ~/.local/state/lockstep/jobs/ID/report.json");
  if (options.install.empty())
    if (const std::string lone = first_given(call.parsed, environment_rows()); !lone.empty())
      return fail(Errc::invalid_input,
                  lone + " says where --install puts packages, and none is given",
                  "give --install SPEC; later jobs of the project run in that environment too");
  LOCKSTEP_TRY_ASSIGN(const ChosenEnvironment environment,
                      chosen_environment(options.environment, options.install));
  LOCKSTEP_TRY_ASSIGN(const auto places, places_of(*options.on, options.place));
  LOCKSTEP_TRY_ASSIGN(const Ground ground, ground_of(options, places.front().here));
  // Before anything is brought: it may be wrong.
  LOCKSTEP_TRY_ASSIGN(const cluster::JobRequest request, request_of(call, options, places, ground));
  LOCKSTEP_TRY_ASSIGN(const int unready, make_ready(options, places, ground, environment));
  if (unready != 0) return unready;
  const cluster::KnownJob job = known_job(request, options, call.parsed);
  LOCKSTEP_TRY_ASSIGN(const cluster::JobBook book, cluster::JobBook::open(io::state_folder()));
  LOCKSTEP_TRY(start(book, request, job));
  if (options.detach) {
    std::puts(job.id.c_str());
    return 0;
  }
  log::info("job {} runs on {} hosts", job.id, job.nodes.size());
  return follow(book, job, call.parsed.text("report"));
}

}  // namespace

int run_on_hosts(const Call& call, const RemoteOptions& options) {
  const auto code = run_there(call, options);
  return code ? *code : refuse(code.error());
}

std::string needs_on(const Parsed& parsed) {
  return first_given(parsed, remote_rows());
}

}  // namespace lockstep::cli
