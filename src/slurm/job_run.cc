#include "slurm/job_run.h"

#include "base/clock_ms.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/nodelist.h"
#include "proc/tool_output.h"
#include "slurm/bad_node_notes.h"
#include "slurm/scontrol_command.h"
#include "slurm/tools.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

namespace lockstep::slurm {

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

int run_number() {
  return static_cast<int>(parse_int(variable("SLURM_RESTART_COUNT")).value_or(0));
}

std::vector<std::string> nodes_of_job() {
  auto nodes = codec::expand_nodelist(variable("SLURM_JOB_NODELIST"));
  return nodes ? std::move(*nodes) : std::vector<std::string>();
}

JobRun::JobRun(io::Loop& loop, std::string folder) : loop_(loop), folder_(std::move(folder)) {}

Result<proc::Child> JobRun::start(const std::vector<std::string>& argv) const {
  return start(argv, proc::own_environment());
}

Result<proc::Child> JobRun::start(const std::vector<std::string>& argv,
                                  std::vector<std::string> environment) const {
  proc::SpawnSpec spec;
  LOCKSTEP_TRY_ASSIGN(spec.executable, proc::find_executable(argv.front(), variable("PATH")));
  spec.argv = argv;
  spec.env = std::move(environment);
  spec.env.push_back("LOCKSTEP_JOB_ID=" +
                     std::filesystem::path(folder_.path()).filename().string());
  return proc::spawn(spec);
}

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
    if (report) reports.push_back(std::move(*report));
  }
  return reports;
}

Result<int> JobRun::conclude(const BatchFacts& facts, bool may_be_preempted) {
  return conclude(judge(facts, reports(), nodes_of_job()), may_be_preempted);
}

Result<int> JobRun::conclude(const Verdict& verdict, bool may_be_preempted) {
  state_.ended_ms = unix_ms();
  state_.code = verdict.code;
  state_.cause = cause_name(verdict.cause);
  state_.words = verdict.words;
  if (verdict.cause != Cause::success)
    log::warning("job {}: {}: {}", state_.job, state_.cause, state_.words);
  if (verdict.cause == Cause::stopped && may_be_preempted && is_preempted()) {
    leave_preempted();
    return verdict.code;
  }
  unfit_ = note_bad_nodes(folder_, state_, verdict);
  state_.stage = requeue(verdict) ? Stage::requeued : Stage::ended;
  LOCKSTEP_TRY(keep());
  return verdict.code;
}

// The ranks were told to make room, and this process was not (yet).
bool JobRun::is_preempted() const {
  const auto told = run_here(scontrol_job_command(state_.job));
  return told && !oneline_value(told->out, "PreemptTime").empty();
}

// An old Slurm would take the job for one that has ended by itself if it ended now. A new one would
// run it a second time too often if it did not.
void JobRun::leave_preempted() {
  constexpr std::chrono::minutes kLongest{5};
  log::warning("job {} is preempted: Slurm takes its nodes, and queues it again or ends it",
               state_.job);
  state_.stage = Stage::requeued;
  state_.cause = "preempted";
  if (const Status kept = keep(); !kept) log::error("{}", kept.error().message);
  const auto version = run_here({"scontrol", "--version"});
  if (!version || !queues_again_what_ends_preempted(version->out)) pause(kLongest);
}

// Only a job that waits takes this; it is still ending when it was just queued again.
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

// Slurm kills this process once it has queued the job again; until then the nodes that died are
// left out. True: the job will run again.
bool JobRun::requeue(const Verdict& verdict) {
  const RequeueRule rule{.asked = state_.requeue};
  if (!is_requeued(rule, verdict.cause, state_.earlier)) return false;
  state_.stage = Stage::requeued;
  if (const Status kept = keep(); !kept) log::error("{}", kept.error().message);
  // The controller may be away for a moment.
  constexpr int kTries = 12;
  constexpr std::chrono::seconds kPause{5};
  for (int i = 0; call_tool({"scontrol", "requeue", state_.job}) != 0; ++i) {
    if (i == kTries) return false;
    pause(kPause);
  }
  std::vector<std::string> bad = unfit_;
  if (verdict.cause == Cause::node_lost)
    bad.insert(bad.end(), verdict.silent.begin(), verdict.silent.end());
  leave_out(bad);
  return true;
}

}  // namespace lockstep::slurm
