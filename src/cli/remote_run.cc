#include "cli/remote_run.h"

#include "base/clock_ms.h"
#include "base/exit_codes.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/ground.h"
#include "cli/hostfile_places.h"
#include "cli/job_json.h"
#include "cli/run_options.h"
#include "cli/sweep_options.h"
#include "cli/terminal.h"
#include "codec/json.h"
#include "codec/rdzv_conf.h"
#include "host/identity.h"
#include "host/own_addresses.h"
#include "hosts/command_run.h"
#include "hosts/variables.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "io/replace_file.h"
#include "jobs/job_book.h"
#include "jobs/on_hosts/begin.h"
#include "jobs/on_hosts/hosts_job.h"
#include "jobs/on_hosts/job_follow.h"
#include "jobs/on_hosts/job_plan.h"
#include "jobs/on_hosts/node_words.h"
#include "jobs/places/free_name.h"
#include "launch/backend_row.h"
#include "setup/spec.h"

#include <fmt/core.h>

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

bool gave_any(const Parsed& parsed, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return parsed.has(name); });
}

// Returns "--name" of the first of these options that was given; empty: none was.
std::string first_given(const Parsed& parsed, const std::vector<Option>& options) {
  for (const Option& option : options)
    if (parsed.has(option.name)) return "--" + std::string(option.name);
  return {};
}

std::string name_of(const RemoteOptions& options, const Parsed& parsed) {
  if (options.name) return *options.name;
  return std::filesystem::path(parsed.script.value_or("")).filename();
}

bool meets_elsewhere(const Parsed& parsed) {
  return gave_any(parsed, {"rdzv-endpoint", "master-addr", "master-port", "standalone"});
}

// With 0 the job ends with its host, as the user asks.
bool wants_no_successor(const Parsed& parsed) {
  const auto conf = codec::parse_rdzv_conf(parsed.text("rdzv-conf").value_or(""));
  if (!conf) return false;
  const auto patience = codec::rdzv_conf_int(*conf, "succession_timeout");
  return patience && *patience == 0;
}

// Returns how many nodes may host the rendezvous. torchrun's backends know a single place.
std::size_t most_endpoints(const Parsed& parsed) {
  const auto named = parsed.text("rdzv-backend");
  const launch::BackendRow* row =
      named ? launch::find_backend(*named) : &launch::lockstep_backend();
  if (row == nullptr || row->place != launch::BackendRow::Place::node) return 1;
  return row->most_endpoints;
}

jobs::on_hosts::UserWords user_words(const Parsed& parsed) {
  return {
      .workers = gave_any(parsed, {"nproc-per-node", "slots"}),
      .one_worker = parsed.text("nproc-per-node").value_or("") == "1",
      .nodes = parsed.has("nnodes"),
      .run_id = parsed.has("rdzv-id"),
      .backend = parsed.has("rdzv-backend"),
      .meeting = meets_elsewhere(parsed),
      .line_form = gave_any(parsed, {"tee", "redirects", "log-prefix", "log-line-prefix-template"}),
      .tails = parsed.has("report-tails"),
      .replacement = parsed.has("no-replacement")};
}

// Returns the words for each node's `lockstep run`, besides those of the user.
std::vector<std::vector<std::string>> own_words(const jobs::on_hosts::JobRequest& request,
                                                const RemoteOptions& options,
                                                const ChosenPlaces& places, const Parsed& parsed) {
  jobs::on_hosts::WordsRequest words{.job = request.spec.id,
                                     .run_id = options.run_id,
                                     .needs_endpoint = request.needs_endpoint,
                                     .rented = options.hosts_gone != nullptr};
  for (std::size_t i = 0; i < request.hosts.size(); ++i)
    // The slots of a hostfile are no workers of a row.
    words.nodes.push_back({.workers = request.spec.rows > 0 ? std::nullopt : request.hosts[i].slots,
                           .slots = places.slots.empty() ? std::string() : places.slots[i]});
  return jobs::on_hosts::words_of_nodes(words, user_words(parsed));
}

// Makes a sweep of the request, if the user wants one.
Status add_rows(const Parsed& parsed, jobs::on_hosts::JobRequest& request) {
  SweepOptions options;
  fill(run_table(), parsed, options);
  LOCKSTEP_TRY_ASSIGN(const auto rows, sweep_rows(options));
  if (!rows) return {};
  request.spec.rows = static_cast<std::int64_t>(rows->chosen.size());
  request.spec.env.push_back(std::string(kSweepMark) + "=1");
  // Node 0 keeps the queue of rows for all hosts, and nobody takes it over.
  request.most_endpoints = 1;
  // The hosts may not have the file, or another one of that name.
  if (options.sweep_file)
    request.spec.env.push_back(std::string(kSweepVariable) + "=" + rows::print_csv(rows->table));
  return {};
}

Result<jobs::on_hosts::JobRequest> request_of(const Call& call, const RemoteOptions& options,
                                              const ChosenPlaces& places, const Ground& ground) {
  Parsed parsed = call.parsed;
  parsed.script = script_there(parsed.script.value_or(""), ground);
  jobs::on_hosts::JobRequest request;
  request.hosts = places.hosts;
  request.mixed_hosts = options.mixed_hosts;
  job::JobSpec& spec = request.spec;
  spec.id = options.job_id.empty() ? job::new_job_id() : options.job_id;
  spec.name = name_of(options, parsed);
  // Nodes do not get the options that this machine carries out.
  spec.run = run_words(run_table(), parsed,
                       {"report", "explain", "print-completion", "fold", "sweep-file"});
  spec.folder = ground.folder;
  spec.client = fmt::format("{}@{}", geteuid(), host::hostname());
  spec.created_ms = unix_ms();
  spec.queue = options.queue;
  spec.image = parsed.text("container").value_or("");
  std::vector<std::string> variables = places.variables;
  variables.insert(variables.end(), options.variables.env.begin(), options.variables.env.end());
  if (options.attempt > 0) variables.push_back(fmt::format("LOCKSTEP_ATTEMPT={}", options.attempt));
  LOCKSTEP_TRY_ASSIGN(spec.env, hosts::variables_of({.env = variables,
                                                     .files = options.variables.env_files,
                                                     .secrets = options.variables.secrets},
                                                    options.own_variable ? options.own_variable
                                                                         : hosts::own_variable));
  request.secrets = options.variables.secrets;
  request.needs_endpoint = request.hosts.size() > 1 && !meets_elsewhere(parsed);
  request.most_endpoints = most_endpoints(parsed);
  LOCKSTEP_TRY(add_rows(parsed, request));
  // The course of a rented job starts the job again after the loss of a machine, without a vote.
  request.client_votes = request.hosts.size() == 2 && request.needs_endpoint &&
                         request.most_endpoints > 1 && !options.detach && !options.hosts_gone &&
                         !parsed.has("rdzv-token-file") && !wants_no_successor(parsed) &&
                         !request.hosts[0].here && !request.hosts[1].here;
  if (request.needs_endpoint && !parsed.has("rdzv-token-file"))
    // A token keeps programs of other users out of the rendezvous.
    spec.env.push_back(std::string(jobs::on_hosts::kTokenVariable) + "=" + random_uuid4() +
                       random_uuid4());
  request.words = own_words(request, options, places, parsed);
  return request;
}

jobs::KnownJob known_job(const jobs::on_hosts::JobRequest& request, const RemoteOptions& options,
                         const Parsed& parsed) {
  std::vector<std::string> command = {parsed.script.value_or("")};
  command.insert(command.end(), parsed.script_args.begin(), parsed.script_args.end());
  return {.id = request.spec.id,
          .name = request.spec.name,
          .place = options.hostfile ? *options.hostfile : *options.on,
          .command = printable(shell_join(command), 500),
          .nodes = request.hosts,
          .created_ms = request.spec.created_ms,
          .status = {.state = jobs::JobState::starting}};
}

// Refuses options that contradict each other.
Status check_words(const Call& call, const RemoteOptions& options) {
  if (call.parsed.has("explain"))
    return fail(Errc::invalid_input,
                "--explain describes a run on this machine, and --on runs elsewhere",
                "leave one of them out");
  if (options.json && !options.detach)
    return fail(Errc::invalid_input, "--json reports how a job was started, and needs --detach",
                "--report writes how it has ended");
  if (options.force && options.sync == "none")
    return fail(Errc::invalid_input, "--force is for synced files, and --sync none sends none",
                "leave one of them out");
  if (options.detach && call.parsed.has("report"))
    return fail(Errc::invalid_input,
                "--report is written at the job's end, and --detach does not wait for it",
                "every host keeps it, as ~/.local/state/lockstep/jobs/ID/report.json");
  if (sweeps(call.parsed) && (call.parsed.has("nnodes") || meets_elsewhere(call.parsed)))
    return fail(
        Errc::invalid_input,
        "a row of a sweep runs on one node, so --nnodes and a place to meet have no meaning",
        "leave them out: the hosts share the rows");
  if (sweeps(call.parsed))
    for (const char* name : {"include", "exclude", "queue", "rdzv-token-file"})
      if (call.parsed.has(name))
        return fail(Errc::invalid_input, fmt::format("--{} cannot be used with a sweep", name));
  if (options.install.empty())
    if (const std::string lone = first_given(call.parsed, environment_rows()); !lone.empty())
      return fail(Errc::invalid_input,
                  lone + " says where --install puts packages, and none is given",
                  "give --install SPEC; later jobs of the project run in that environment too");
  return {};
}

int refused_code(const Error& error) {
  return number(cli::refuse(kProgram, error, kAsSsh));
}

Result<jobs::on_hosts::StartedJob> start(const jobs::JobBook& book,
                                         const jobs::on_hosts::JobRequest& request,
                                         const jobs::KnownJob& job, const RemoteOptions& options) {
  auto started = jobs::on_hosts::begin(book, request, job,
                                       {.recorded = options.on_job, .started = options.on_started});
  if (started && !started->ahead.empty())
    log::warning("job {} waits for {}", job.id, join(started->ahead, ", "));
  return started;
}

void print_started(const jobs::KnownJob& job, const jobs::on_hosts::StartedJob& started,
                   bool json) {
  if (!json) {
    std::puts(job.id.c_str());
    return;
  }
  std::vector<std::string> nodes;
  nodes.reserve(job.nodes.size());
  for (const hosts::HostPlace& node : job.nodes)
    nodes.push_back(node.name);
  std::puts(codec::print_json(started_json(job.id, nodes, started.ahead)).c_str());
}

// Copies the first report found on the nodes into the user's file.
Status bring_report(const jobs::KnownJob& job, const std::string& path) {
  LOCKSTEP_TRY_ASSIGN(const auto endings,
                      hosts::run_command({.hosts = job.nodes,
                                          .argv = {"host-job", "report", job.id},
                                          .own_binary = true,
                                          .input = hosts::CommandRequest::Input::none,
                                          .output = hosts::CommandRequest::Output::keep}));
  for (const hosts::HostEnding& ending : endings)
    if (ending.code == 0 && !ending.out.empty()) return io::replace_file(path, ending.out);
  return fail(Errc::not_found, "no host has a report of the job");
}

void follow(const jobs::JobBook& book, const jobs::KnownJob& job, const Parsed& parsed,
            const RemoteOptions& options, std::optional<jobs::on_hosts::VotePlan> vote,
            jobs::AttemptEnd& ended) {
  using OnStop = jobs::FollowOptions::OnStop;
  const std::optional<std::string> report = parsed.text("report");
  const auto outcome = jobs::on_hosts::follow_job(
      {.job = job,
       .options = {.on_stop = options.is_course ? OnStop::interrupt_cancels : OnStop::cancel,
                   .fold = folds(parsed.text("fold").value_or("auto")),
                   .gone = options.hosts_gone},
       .vote = std::move(vote)});
  if (!outcome) {
    ended.code = refused_code(outcome.error());
    ended.left = true;  // the job goes on: another follower may see more
    return;
  }
  ended.gone = outcome->gone;
  ended.silent = outcome->silent;
  if (outcome->left) {
    ended.left = true;
    ended.code = 128 + outcome->signal;
    log::warning("job {} goes on; lockstep logs -f {} shows it, lockstep cancel {} ends it", job.id,
                 job.id, job.id);
    return;
  }
  const jobs::JobStatus& status = outcome->status;
  for (const jobs::NodeStatus& node : status.nodes)
    if (node.state == jobs::JobState::lost)
      log::warning("{}: the job's supervisor was killed there", node.name);
  if (const Status noted = book.note(job.id, status); !noted)
    log::warning("{}", noted.error().message);
  // The course terminates the machines, which have the rows.
  if (options.is_course && !outcome->gone)
    if (const auto known = book.find(job.id))
      if (const Status kept = jobs::on_hosts::HostsJob(*known).keep_rows(book); !kept)
        log::warning("{}", kept.error().message);
  if (report)
    if (const Status brought = bring_report(job, *report); !brought)
      log::error("--report {}: {}", *report, brought.error().message);
  ended.canceled = status.by_person;
  ended.rows_ended = status.rows_ended;
  ended.code = status.code.value_or(kExitNotReached);
}

// Returns the command that brings the outputs later.
std::string back_later(const Parsed& parsed, const RemoteOptions& options) {
  return fmt::format("lockstep sync {}{} --back PATH", options.on.value_or("HOST"),
                     sweeps(parsed) ? " --nodes N" : "");
}

// Success is told only if the outputs are here.
void bring_back(const Parsed& parsed, const RemoteOptions& options, const Ground& ground,
                const jobs::KnownJob& job, jobs::AttemptEnd& ended) {
  const auto tell = [](const std::string& text) {
    std::fputs(fmt::format("{}: {}\n", kProgram, text).c_str(), stderr);
  };
  if (ended.left && !options.back.empty())
    tell("--back brings nothing now; after the job's end: " + back_later(parsed, options));
  if (ended.left) return;
  const Status brought = bring_outputs(parsed, options, ground, job.nodes, tell);
  if (brought) return;
  print_error(kProgram, brought.error());
  if (ended.code != 0) return;
  ended.code = brought.error().code == Errc::canceled ? 128 + brought.error().sys : kExitNotReached;
}

// Gives a second running job of the same name a different name, so that commands can tell them
// apart.
Status set_apart(const jobs::JobBook& book, job::JobSpec& spec) {
  LOCKSTEP_TRY_ASSIGN(auto name, jobs::places::free_name(book, spec.name));
  if (name != spec.name)
    log::warning("a job named {} has not ended: this job is named {}", spec.name, name);
  spec.name = std::move(name);
  return {};
}

Result<jobs::AttemptEnd> run_there(const Call& call, const RemoteOptions& options) {
  LOCKSTEP_TRY(check_words(call, options));
  LOCKSTEP_TRY_ASSIGN(const ChosenEnvironment environment,
                      chosen_environment(options.environment, options.install));
  LOCKSTEP_TRY_ASSIGN(const ChosenPlaces places, chosen_places(options));
  for (const std::string& note : places.notes)
    log::warning("{}", note);
  LOCKSTEP_TRY_ASSIGN(const Ground ground, ground_of(options, places.hosts.front().here));
  // Check the request before anything is copied.
  LOCKSTEP_TRY(check_outputs(options, ground, places.hosts.front().here));
  LOCKSTEP_TRY_ASSIGN(jobs::on_hosts::JobRequest request,
                      request_of(call, options, places, ground));
  LOCKSTEP_TRY_ASSIGN(const int unready,
                      make_ready(kProgram, options, places.hosts, ground, environment));
  if (unready != 0)
    return jobs::AttemptEnd{
        .code = unready, .job = {}, .why = "the machines could not be made ready"};
  LOCKSTEP_TRY_ASSIGN(const jobs::JobBook book, jobs::JobBook::open(io::state_folder()));
  // Attempts of a rented job run one after another: names cannot clash.
  if (!options.hosts_gone) LOCKSTEP_TRY(set_apart(book, request.spec));
  const jobs::KnownJob job = known_job(request, options, call.parsed);
  LOCKSTEP_TRY_ASSIGN(const jobs::on_hosts::StartedJob started, start(book, request, job, options));
  if (options.detach) {
    print_started(job, started, options.json);
    return jobs::AttemptEnd{.job = job.id, .left = true};
  }
  log::info("job {} runs on {} hosts", job.id, job.nodes.size());
  jobs::AttemptEnd ended{.job = job.id};
  auto vote = jobs::on_hosts::vote_plan(
      request, started, call.parsed.text("rdzv-id").value_or(job.id), host::own_addresses());
  follow(book, job, call.parsed, options, std::move(vote), ended);
  // The course of a rented job brings the outputs itself.
  if (!options.is_course) bring_back(call.parsed, options, ground, job, ended);
  return ended;
}

}  // namespace

Status check_job(const Call& call, const RemoteOptions& options) {
  LOCKSTEP_TRY(check_words(call, options));
  LOCKSTEP_TRY(chosen_environment(options.environment, options.install));
  LOCKSTEP_TRY(setup::parse_specs(options.install));
  LOCKSTEP_TRY(hosts::variables_of({.env = options.variables.env,
                                    .files = options.variables.env_files,
                                    .secrets = options.variables.secrets},
                                   hosts::own_variable));
  LOCKSTEP_TRY_ASSIGN(const Ground ground, ground_of(options, false));
  if (!ground.project && !options.install.empty())
    return fail(Errc::invalid_input, "--install needs a project, and --sync none sends none",
                "leave --sync none out");
  LOCKSTEP_TRY(check_outputs(options, ground, false));
  const std::string script = call.parsed.script.value_or("");
  std::error_code error;
  if (ground.project && !options.folder && !gave_any(call.parsed, {"module", "no-python"}) &&
      !std::filesystem::exists(script, error))
    return fail(Errc::not_found, fmt::format("there is no {} to send", printable(script, 200)),
                "-m runs a module, --no-python a program of the machine");
  return {};
}

jobs::AttemptEnd run_job_on_hosts(const Call& call, const RemoteOptions& options) {
  auto ended = run_there(call, options);
  if (ended) return *ended;
  return {.code = refused_code(ended.error()), .job = {}, .why = ended.error().message};
}

Result<std::optional<jobs::AttemptEnd>> follow_started_job(const Call& call,
                                                           const RemoteOptions& options,
                                                           const std::string& job) {
  LOCKSTEP_TRY_ASSIGN(const jobs::JobBook book, jobs::JobBook::open(io::state_folder()));
  const auto known = book.find(job);
  if (!known && known.error().code == Errc::not_found) return std::optional<jobs::AttemptEnd>();
  if (!known) return Failure(known.error());
  const auto begun = jobs::on_hosts::settle_beginning(book, *known);
  if (!begun && options.hosts_gone && options.hosts_gone())
    return std::optional<jobs::AttemptEnd>({.code = kExitNotReached,
                                            .job = job,
                                            .gone = true,
                                            .silent = std::chrono::milliseconds::max()});
  if (!begun) return Failure(begun.error());
  if (!*begun) return std::optional<jobs::AttemptEnd>();
  jobs::AttemptEnd ended{.job = job};
  follow(book, *known, call.parsed, options, {}, ended);
  return std::optional<jobs::AttemptEnd>(std::move(ended));
}

ExitCode run_on_hosts(const Call& call, const RemoteOptions& options) {
  if (options.detach && !options.back.empty())
    return refuse(kProgram,
                  {Errc::invalid_input,
                   "--back brings files at the job's end, and --detach does not wait for it",
                   "after the end: " + back_later(call.parsed, options), 0},
                  kAsSsh);
  return passed_on(run_job_on_hosts(call, options).code);
}

std::string needs_on(const Parsed& parsed) {
  return first_given(parsed, remote_rows());
}

}  // namespace lockstep::cli
