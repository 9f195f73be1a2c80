// lockstep jobs: lists this user's jobs on other machines, and the runs on this machine.
#include "base/date_text.h"
#include "cli/job_options.h"
#include "cli/subcommand.h"
#include "codec/json.h"
#include "io/own_folders.h"
#include "jobs/here/local_job.h"
#include "jobs/job_book.h"
#include "jobs/job_rows.h"
#include "jobs/places/find_job.h"
#include "jobs/places/job_refresh.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace lockstep::cli {
namespace {

using jobs::KnownJob;

// Adds what the job's place knows beyond the record.
void add_facts(const jobs::PlaceFacts& facts, nlohmann::ordered_json& json) {
  if (!facts.number.empty()) {
    json["job"] = facts.number;
    json["output"] = facts.output;
  }
  if (!facts.numbers.empty()) json["jobs"] = facts.numbers;
  if (!facts.earlier) return;
  nlohmann::ordered_json earlier = nlohmann::ordered_json::array();
  for (const jobs::PlaceFacts::Run& run : *facts.earlier)
    earlier.push_back({{"job", run.number}, {"cause", run.cause}});
  json["earlier"] = std::move(earlier);
  if (!facts.chain) return;
  // null: a chain that may continue without limit. Absent: no chain.
  json["chain"] = nullptr;
  if (*facts.chain > 0) json["chain"] = *facts.chain;
}

// Returns one job's part of --json. Absent members are unknown.
nlohmann::ordered_json json_of(const KnownJob& job) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const hosts::HostPlace& node : job.nodes)
    nodes.push_back(node.name);
  nlohmann::ordered_json json{{"id", job.id},
                              {"name", job.name},
                              {"on", job.place},
                              {"nodes", std::move(nodes)},
                              {"command", job.command},
                              {"created_ms", job.created_ms},
                              {"state", jobs::state_name(job.status.state)}};
  if (job.away_ms != 0) json["unreachable_since_ms"] = job.away_ms;
  add_facts(jobs::places::open_job(job)->facts(), json);
  if (job.status.code) json["code"] = *job.status.code;
  if (job.status.ended_ms > 0) json["ended_ms"] = job.status.ended_ms;
  if (!job.status.why.empty()) json["why"] = job.status.why;
  return json;
}

void print_json(const std::vector<KnownJob>& jobs, const std::vector<jobs::here::LocalRun>& runs) {
  nlohmann::ordered_json all{{"jobs", nlohmann::ordered_json::array()},
                             {"runs", nlohmann::ordered_json::array()}};
  for (const KnownJob& job : jobs)
    all["jobs"].push_back(json_of(job));
  for (const jobs::here::LocalRun& run : runs)
    all["runs"].push_back({{"pid", run.pid},
                           {"command", run.command},
                           {"folder", run.folder},
                           {"started_ms", run.started_ms}});
  std::puts(codec::print_json(all).c_str());
}

void print_row(const std::string& id, const std::string& name, const std::string& on,
               std::string_view state, std::int64_t created_ms, const std::string& command) {
  std::fputs(fmt::format("{:<10} {:<16} {:<18} {:<12} {:<19}  {}\n", id, name, on, state,
                         date_text(created_ms), command)
                 .c_str(),
             stdout);
}

// Returns the text of the column STATE. No host of an unreachable job answers, so its last known
// state may be old: show since when instead.
std::string state_text(const KnownJob& job) {
  if (job.away_ms != 0) return "unreachable since " + date_text(job.away_ms);
  const std::string state(jobs::state_name(job.status.state));
  const int code = job.status.code.value_or(0);
  if (jobs::has_rows(job)) return fmt::format("{}: {}", state, job.status.why);
  return job.status.state == jobs::JobState::failed ? fmt::format("{} ({})", state, code) : state;
}

void print_table(const std::vector<KnownJob>& jobs, const std::vector<jobs::here::LocalRun>& runs) {
  std::fputs(fmt::format("{:<10} {:<16} {:<18} {:<12} {:<19}  {}\n", "JOB", "NAME", "ON", "STATE",
                         "STARTED", "COMMAND")
                 .c_str(),
             stdout);
  for (const jobs::here::LocalRun& run : runs)
    print_row(jobs::here::local_id(run.pid), "-", "this machine", "running", run.started_ms,
              run.command);
  for (const KnownJob& job : jobs) {
    std::string on = job.place;
    const std::string number = jobs::places::open_job(job)->facts().number;
    if (!number.empty()) on += " " + number;
    if (job.nodes.size() > 1) on += fmt::format(" ({})", job.nodes.size());
    print_row(job.id, job.name, on, state_text(job), job.created_ms, job.command);
  }
}

Status list_jobs(const Call& call) {
  JobsOptions options;
  fill(jobs_table(), call.parsed, options);
  if (options.most < 1) return fail(Errc::invalid_input, "--most must be at least 1");
  LOCKSTEP_TRY_ASSIGN(const jobs::JobBook book, jobs::JobBook::open_to_look(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(auto of_book, book.list(static_cast<std::size_t>(options.most)));
  auto jobs = jobs::places::owned_jobs();
  std::move(of_book.begin(), of_book.end(), std::back_inserter(jobs));
  // Asks the hosts of all unended jobs at the same time.
  if (!options.offline) LOCKSTEP_TRY(jobs::places::refresh_jobs(book, jobs));
  const auto runs = jobs::here::local_runs();
  options.json ? print_json(jobs, runs) : print_table(jobs, runs);
  return {};
}

}  // namespace

extern constinit const Subcommand kJobs{.name = "jobs",
                                        .summary = "list running and ended jobs, here and on hosts",
                                        .table = jobs_table,
                                        .run = run_status<list_jobs>,
                                        .signals = Signals::blocked};

}  // namespace lockstep::cli
