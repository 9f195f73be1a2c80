#include "slurm/job_run.h"

#include "base/clock_ms.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/nodelist.h"
#include "io/fd.h"
#include "proc/tool_output.h"
#include "slurm/bad_node_notes.h"
#include "slurm/next_job.h"
#include "slurm/scontrol_command.h"
#include "slurm/tools.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

namespace lockstep::slurm {

// SLURM_RESTART_COUNT is unset in the first run.
int run_number(const JobFolder& folder) {
  return folder.runs_before(env_text("SLURM_JOB_ID")) +
         static_cast<int>(parse_int(env_text("SLURM_RESTART_COUNT")).value_or(0));
}

// An array's last task has the number of the whole array: scancel would end all tasks. Other jobs
// may have inherited the array's variables from the task that submitted them.
std::string number_of_job(const JobFolder& folder) {
  if (!folder.is_in_row()) return env_text("SLURM_JOB_ID");
  const std::string array = env_text("SLURM_ARRAY_JOB_ID");
  const std::string task = env_text("SLURM_ARRAY_TASK_ID");
  return array.empty() || task.empty() ? env_text("SLURM_JOB_ID") : array + "_" + task;
}

std::vector<std::string> nodes_of_job() {
  auto nodes = codec::expand_nodelist(env_text("SLURM_JOB_NODELIST"));
  return nodes ? std::move(*nodes) : std::vector<std::string>();
}

namespace {

// Replaces a verdict "stopped" for a job that Slurm stopped at its time limit. Keeps the silent
// nodes.
Verdict within_limit(Verdict verdict) {
  Verdict limit = time_limit_verdict();
  limit.silent = std::move(verdict.silent);
  return limit;
}

// told: scontrol's line about the job; empty: unknown.
bool is_canceled(const std::string& told) {
  return !told.empty() && stopped_by(told) == StoppedBy::somebody;
}

}  // namespace

JobRun::JobRun(io::Loop& loop, std::string folder) : loop_(loop), folder_(std::move(folder)) {}

Result<proc::Child> JobRun::start(const std::vector<std::string>& argv) const {
  return start(argv, proc::own_environment());
}

Result<proc::Child> JobRun::start(const std::vector<std::string>& argv,
                                  std::vector<std::string> environment) const {
  proc::SpawnSpec spec;
  LOCKSTEP_TRY_ASSIGN(spec.executable, proc::find_executable(argv.front(), env_text("PATH")));
  spec.argv = argv;
  spec.env = std::move(environment);
  // Programs of the job can see that a submitted job runs them, and commands find the agents of the
  // job.
  spec.env.push_back("LOCKSTEP_JOB_ID=" + folder_.job_id());
  return proc::spawn(spec);
}

// The pidfd becomes readable at the child's end, so no SIGCHLD handler is needed.
void JobRun::wait_for(proc::Child& child) {
  io::Watch end(loop_, child.pidfd());
  end.start(io::kReadable, [&](int) {
    if (child.reap()) loop_.stop();
  });
  loop_.run();
}

int JobRun::call_tool(const std::vector<std::string>& argv) {
  auto child = start(argv);
  if (!child) {
    log::error("{}", child.error().message);
    return 1;
  }
  wait_for(*child);
  return child->exit() ? child->exit()->shell_code() : 1;
}

void JobRun::pause(std::chrono::milliseconds time) {
  io::Timer timer(loop_);
  timer.start(time, [this] { loop_.stop(); });
  loop_.run();
}

std::vector<NodeReport> JobRun::reports() const {
  std::vector<NodeReport> reports;
  for (const std::string& text : folder_.reports(state_.run)) {
    auto report = read_report(text);
    // Skip reports that do not parse. Their nodes count as silent.
    if (report) reports.push_back(std::move(*report));
  }
  return reports;
}

Result<int> JobRun::conclude(const BatchFacts& facts, bool may_be_preempted) {
  return conclude(judge(facts, reports(), nodes_of_job()), may_be_preempted);
}

Result<int> JobRun::conclude(Verdict verdict, bool may_be_preempted) {
  state_.ended_ms = unix_ms();
  StoppedBy stopped = StoppedBy::nobody;
  std::string told;
  // SIGTERM alone does not tell whether a user, the time limit or a preemption stopped the job.
  // Only Slurm knows, and the answer decides whether the job may run again.
  if (verdict.cause == Cause::stopped && (may_be_preempted || state_.requeue)) {
    told = told_by_slurm();
    stopped = stopped_by(told);
    if (stopped == StoppedBy::time_limit) verdict = within_limit(std::move(verdict));
  }
  state_.code = verdict.code;
  state_.cause = cause_name(verdict.cause);
  state_.words = verdict.words;
  if (verdict.cause != Cause::success)
    log::warning("job {}: {}: {}", state_.job, state_.cause, state_.words);
  if (stopped == StoppedBy::preemption && (may_be_preempted || state_.chain)) {
    leave_preempted(told);
    return verdict.code;
  }
  // A launch of a script has noted its nodes itself. Twice would double their weight.
  unfit_ = verdict.noted ? verdict.unfit : note_bad_nodes(folder_, state_, verdict);
  state_.stage = run_again(verdict) ? Stage::requeued : Stage::ended;
  LOCKSTEP_TRY(keep_end());
  return verdict.code;
}

Status JobRun::keep_end() const {
  if (before_end_) before_end_();
  return keep();
}

// Returns scontrol's line about the job; empty if the controller does not answer. Slurm signals all
// processes of a job that it stops, and so may kill the scontrol that asks: ask again. Without the
// answer, a canceled job would go on.
std::string JobRun::told_by_slurm() const {
  constexpr int kTries = 3;
  constexpr int kKilled = 128;  // exit codes above: killed by a signal, here or below a wrapper
  for (int i = 1;; ++i) {
    auto told = run_here(scontrol_job_command(state_.job));
    if (!told) return "";
    if (told->exit.shell_code() <= kKilled || i == kTries) return std::move(told->out);
  }
}

// Handles a preempted job. Slurm before 24.05 does not requeue a preempted job that ends early, so
// wait to be killed. Newer versions requeue the job when it ends, so end now.
void JobRun::leave_preempted(std::string_view told) {
  constexpr int kLongest = 300;
  state_.cause = "preempted";
  // The job may not be requeued, so Slurm will end it. Continue in a new job.
  if (state_.chain && oneline_value(told, "Requeue") == "0" && go_on_in_next({})) {
    state_.stage = Stage::requeued;
    if (const Status kept = keep_end(); !kept) log::error("{}", kept.error().message);
    return;
  }
  log::warning("job {} is preempted: Slurm takes the nodes, and requeues or ends the job",
               state_.job);
  state_.stage = Stage::requeued;
  if (const Status kept = keep_end(); !kept) log::error("{}", kept.error().message);
  const auto version = run_here({"scontrol", "--version"});
  if (version && queues_again_what_ends_preempted(version->out)) return;
  // Stop waiting if the parent has changed: the script is gone, and nothing waits for this launch.
  const pid_t parent = getppid();
  for (int i = 0; i < kLongest && getppid() == parent; ++i)
    pause(std::chrono::seconds(1));
}

// Sets the nodes that the requeued job must avoid. Slurm accepts the change for waiting jobs only,
// and a job that was just requeued is still ending: retry.
void JobRun::leave_out(const std::vector<std::string>& nodes) {
  constexpr int kTries = 60;
  constexpr std::chrono::milliseconds kPause{500};
  if (nodes.empty()) return;
  const std::string list = join(nodes, ",");
  for (int i = 0; i < kTries; ++i) {
    if (call_tool({"scontrol", "update", "JobId=" + state_.job, "ExcNodeList=" + list}) == 0)
      return;
    pause(kPause);
  }
}

// Has the job run again, as the same job or a successor, if the rules allow. Returns whether it
// will.
bool JobRun::run_again(const Verdict& verdict) {
  RequeueRule rule{.asked = state_.requeue};
  if (state_.chain.value_or(0) > 0) rule.most_limits = *state_.chain;
  if (!is_requeued(rule, verdict.cause, state_.earlier)) {
    if (verdict.cause == Cause::time_limit && state_.chain)
      log::warning("job {}: the chain is over after {} continuations", state_.job, *state_.chain);
    return false;
  }
  std::string told = told_by_slurm();
  // The user may have run scancel while the ranks were writing checkpoints.
  if (is_canceled(told)) return false;
  std::vector<std::string> bad = unfit_;
  if (verdict.cause == Cause::node_lost)
    bad.insert(bad.end(), verdict.silent.begin(), verdict.silent.end());
  // "0": the user or the site's JobRequeue forbids a requeue.
  const bool may_be_requeued = oneline_value(told, "Requeue") != "0";
  if ((may_be_requeued || !state_.chain) && requeue()) {
    leave_out(bad);
    return true;
  }
  if (!state_.chain) return false;
  // A scancel meanwhile kills `scontrol requeue`, which looks like a refusal.
  if (may_be_requeued)
    if (std::string again = told_by_slurm(); !again.empty()) told = std::move(again);
  if (is_canceled(told)) return false;
  const std::string before = oneline_value(told, "ExcNodeList");
  // sbatch's --exclude replaces the user's own list, so include that list.
  if (!before.empty()) bad.push_back(before);
  return go_on_in_next(bad);
}

// Returns whether Slurm has queued the job again although scontrol failed: the request may have
// arrived and only its answer was lost. Slurm then kills everything here, perhaps including the
// first scontrol that asks, so ask up to three times.
bool JobRun::was_queued_again() {
  constexpr int kTries = 3;
  constexpr std::chrono::milliseconds kPause{300};
  const auto restarts = parse_int(env_text("SLURM_RESTART_COUNT")).value_or(0);
  for (int i = 0; i < kTries; ++i) {
    const auto now = parse_int(oneline_value(told_by_slurm(), "Restarts"));
    if (now) return *now > restarts;
    pause(kPause);
  }
  return false;
}

// Asks Slurm to queue the job again. Records the end of this run before that, because Slurm kills
// this process once the job is queued. Nodes that died are excluded afterwards, since Slurm accepts
// that for waiting jobs only.
bool JobRun::requeue() {
  state_.stage = Stage::requeued;
  if (const Status kept = keep_end(); !kept) log::error("{}", kept.error().message);
  // Retry for a minute: the controller may restart just now.
  constexpr int kTries = 12;
  constexpr std::chrono::seconds kPause{5};
  const std::vector<std::string> argv = {"scontrol", "requeue", state_.job};
  for (int i = 0; i <= kTries; ++i) {
    const auto said = run_here(argv);
    if (said && said->exit.ok()) return true;
    if (was_queued_again()) return true;
    if (said) log::warning("{}", tool_error("queue the job again", argv[0], *said).message);
    // A refusal is final, but a chain can continue in a new job.
    if (state_.chain && said && trouble_of(*said) != Trouble::unreachable) return false;
    pause(kPause);
  }
  return false;
}

// Submits the successor of a chain, where Slurm does not queue the same job again.
bool JobRun::go_on_in_next(const std::vector<std::string>& left_out) {
  auto next = io::read_file(folder_.at(kNextJobFile), 8U << 20).and_then(next_job_from_text);
  if (!next) {
    log::error("the job can't go on: {}", next.error().message);
    return false;
  }
  std::error_code error;
  const NextFacts facts{.job = state_.job,
                        .script = folder_.at("script"),
                        .folder = std::filesystem::current_path(error),
                        .output = state_.output,
                        .left_out = join(left_out, ",")};
  const auto said = proc::tool_output(next_job_command(*next, facts),
                                      environment_of_next(proc::own_environment()),
                                      {.patience = std::chrono::seconds(60)});
  const std::string job = said && said->exit.ok() ? submitted_job(said->out) : "";
  if (job.empty()) {
    const Error why = said ? tool_error("submit the next job of the chain", "sbatch", *said)
                           : Error(said.error());
    log::error("job {}: {}", state_.job, why.message);
    return false;
  }
  // Without the count the successor would overwrite the reports of earlier runs.
  if (const Status noted = folder_.note_runs_before(job, state_.run + 1); !noted)
    log::error("{}", noted.error().message);
  state_.next = job;
  log::warning("job {} goes on as job {}", state_.job, job);
  return true;
}

}  // namespace lockstep::slurm
