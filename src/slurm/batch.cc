#include "slurm/batch.h"

#include "base/clock_ms.h"
#include "base/environment.h"
#include "base/log.h"
#include "host/identity.h"
#include "logs/step_line.h"
#include "proc/tool_output.h"
#include "rows/last_step.h"

#include <fmt/core.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace lockstep::slurm {
namespace {

// Returns the path behind a descriptor; empty if it is not a regular file. The deputy needs the
// path to append to the job's output from another node.
std::string file_behind(int fd) {
  std::error_code error;
  const std::string path =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error);
  return std::filesystem::is_regular_file(path, error) ? path : "";
}

// Returns the user's pattern for steps. The words for `lockstep run` stand between two "--": srun's
// words are before them, the training's behind them.
std::optional<logs::StepPattern> progress_of(const std::vector<std::string>& step) {
  const std::string name = "--progress";
  const auto begin = std::find(step.begin(), step.end(), "--");
  if (begin == step.end()) return std::nullopt;
  for (auto word = begin + 1; word != step.end() && *word != "--"; ++word) {
    std::string pattern;
    if (word->starts_with(name + "=")) pattern = word->substr(name.size() + 1);
    if (*word == name && word + 1 != step.end()) pattern = *(word + 1);
    if (pattern.empty()) continue;
    if (auto made = logs::StepPattern::make(pattern)) return std::move(*made);
  }
  return std::nullopt;
}

}  // namespace

Batch::Batch(const BatchCall& call) : call_(call), run_(loop_, call.folder), next_beat_(loop_) {
  BatchState& state = run_.state();
  state.job = number_of_job(run_.folder());
  state.number = env_text("SLURM_JOB_ID");
  state.run = run_number(run_.folder());
  state.host = host::hostname();
  state.started_ms = unix_ms();
  state.requeue = call.requeue;
  state.chain = call.chain;
  state.lead_s = call.lead_s;
  state.output = file_behind(1);
  // A launch may write to a pipe of its script. A deputy cannot open that pipe from another node,
  // so take the output file of the script's job.
  if (const auto script = run_.folder().of_script(); script && state.output.empty())
    if (const auto job = JobFolder(*script).state()) state.output = job->output;
  watch_ = std::make_unique<WatchFolder>(run_.folder(), state.run, 0);
}

Result<int> Batch::run() {
  if (run_.state().job.empty())
    return fail(Errc::invalid_input, "SLURM_JOB_ID is not set: this is not a Slurm job",
                "the script is for sbatch");
  LOCKSTEP_TRY_ASSIGN(signals_,
                      proc::SignalWatch::open(loop_, [this](int number) { on_signal(number); }));
  remember_earlier();
  // Write the state before the first heartbeat: a node that sees the lease needs the state to take
  // over.
  LOCKSTEP_TRY(run_.keep());
  LOCKSTEP_TRY(watch_->claim());
  beat();
  if (!call_.carry.empty())
    LOCKSTEP_TRY(is_carried_here(call_.how) ? carry_binary() : run_own_binary());
  const bool is_script = call_.role == BatchRole::script;
  LOCKSTEP_TRY_ASSIGN(
      step_, run_.start(call_.step, is_script ? environment_of_script() : proc::own_environment()));
  run_.wait_for(*step_);
  if (is_script) await_launches();
  facts_.step_code = step_->exit() ? step_->exit()->shell_code() : 1;
  return conclude();
}

// Copies the binary to all nodes. No --force: sbcast would write into an existing file, which then
// still belongs to the user who created it.
Status Batch::carry_binary() {
  LOCKSTEP_TRY_ASSIGN(const std::string own, proc::own_executable());
  // The default block of 8 MB makes sbcast slow.
  if (const int code =
          run_.call_tool({"sbcast", "--preserve", "--compress", "--size=1m", own, call_.carry});
      code != 0)
    return fail(
        Errc::unavailable,
        fmt::format("sbcast ended with {}: the nodes have no lockstep at {}", code, call_.carry),
        "put lockstep on a file system that all nodes see, and submit from there");
  return {};
}

// Starts the binary from where it lies: the folder turned out to be shared. The script was written
// before submission, when that was unknown, so remove the words about the copy here.
Status Batch::run_own_binary() {
  LOCKSTEP_TRY_ASSIGN(const std::string own, proc::own_executable());
  auto& step = call_.step;
  const auto binary = std::find(step.begin(), step.end(), call_.carry);
  if (binary != step.end()) *binary = own;
  const auto drops = std::find(binary, step.end(), "--drop-binary");
  if (drops != step.end()) step.erase(drops);
  return {};
}

void Batch::on_signal(int number) {
  // SIGUSR1 is our signal before the time limit only if the script did not ask for a signal itself.
  const bool is_lead = call_.role == BatchRole::job || call_.lead_s > 0;
  if (number == SIGUSR1 && is_lead) {
    log::info("the time limit is near: the workers are being stopped");
    facts_.lead_signal = true;
    return signal_ranks(SIGTERM);
  }
  if (number == SIGTERM || number == SIGINT) facts_.stop_signal = true;
  if (call_.role == BatchRole::script) pass_on(number);
  // Signals of Slurm reach the agents of a job directly. A launch forwards them, because a script
  // may signal its own srun, which this process replaces.
  const bool is_for_ranks = number != SIGCONT && number != SIGCHLD && number != SIGWINCH;
  if (call_.role == BatchRole::launch && is_for_ranks)
    signal_ranks(number == SIGINT ? SIGTERM : number);
}

// Signals the ranks through scancel. srun would react to a SIGTERM by sending SIGKILL to all ranks.
void Batch::signal_ranks(int number) {
  auto stop = run_.start({"scancel", fmt::format("--signal={}", number), run_.state().job});
  if (stop)
    helpers_.push_back(std::move(*stop));
  else
    log::error("{}", stop.error().message);
}

// Copies the causes and ids of earlier runs from the state that the previous run left.
void Batch::remember_earlier() {
  BatchState& state = run_.state();
  const auto last = run_.folder().state();
  if (!last || last->run >= state.run) return;
  if (last->job != state.job && last->next != state.job) return;
  state.earlier = last->earlier;
  state.jobs = last->jobs;
  state.jobs.push_back(last->job);
  // No cause: Slurm killed the run before it could conclude.
  state.earlier.push_back(last->cause.empty() ? "cut off" : last->cause);
}

void Batch::beat() {
  watch_->beat(kLease, lease_text(++beats_, ends_agents_, run_.state().host));
  next_beat_.start(std::chrono::seconds(1), [this] { beat(); });
  const std::vector<NodeReport> reports = run_.reports();
  end_step_of_lost_nodes(reports);
  end_agents_that_cannot_begin(reports);
}

// Ends the agents that would wait for nodes whose agents have refused to begin, as on a node that
// cannot start the job's container.
void Batch::end_agents_that_cannot_begin(const std::vector<NodeReport>& reports) {
  if (ends_agents_ || !call_.beginning) return;
  const std::vector<std::string> nodes = nodes_of_job();
  const bool at_first_node = call_.beginning->at_first_node && !nodes.empty();
  if (!lacks_nodes(reports, call_.beginning->to_spare, at_first_node ? nodes.front() : "")) return;
  ends_agents_ = true;
  log::warning("ending the other agents: the job cannot begin without the nodes that have refused");
}

// Kills srun once all agents of the last attempt have reported. srun waits for dead nodes until
// Slurm gives them up (SlurmdTimeout, 300 s by default), and the healthy nodes would idle.
void Batch::end_step_of_lost_nodes(const std::vector<NodeReport>& reports) {
  // Heartbeats to wait, one per second, for the last output.
  constexpr int kLastWords = 5;
  if (!step_ || !step_->alive() || !have_all_reported(reports)) return;
  if (++beats_since_end_ != kLastWords) return;
  log::info("all agents have ended; Slurm does not know yet that a node is gone");
  kill(step_->pid(), SIGKILL);
}

// A sweep's table of results has the last step of each row.
void Batch::note_last_step() {
  BatchState& state = run_.state();
  if (!run_.folder().number_of_row()) return;
  const auto step = rows::last_step_of_output(state.output, progress_of(call_.step));
  if (!step) return;
  state.step = step->step;
  state.step_line = step->line;
}

Result<int> Batch::conclude() {
  if (const auto code = code_of_successor()) return *code;
  note_last_step();
  // A launch never requeues its job at its end: the script decides what happens next. The state
  // carries these fields for a deputy only.
  if (call_.role == BatchRole::launch) {
    run_.state().requeue = false;
    run_.state().chain.reset();
  }
  if (call_.role == BatchRole::script)
    return run_.conclude(judge_script(facts_, last_launch()), !facts_.stop_signal);
  return run_.conclude(facts_, !facts_.stop_signal);
}

// Returns the exit code that a deputy concluded with. A deputy may have taken over while this
// process was suspended or cut off, and two conclusions would contradict each other. nullopt: no
// deputy, or the deputy is gone.
std::optional<int> Batch::code_of_successor() {
  // Seconds to wait for the deputy's conclusion.
  constexpr int kLongest = 60;
  if (!WatchFolder(run_.folder(), run_.state().run, 1).is_claimed()) return std::nullopt;
  for (int i = 0; i < kLongest; ++i) {
    const auto state = run_.folder().state();
    if (state && state->run == run_.state().run && state->stage != Stage::running)
      return state->code;
    run_.pause(std::chrono::seconds(1));
  }
  return std::nullopt;
}

}  // namespace lockstep::slurm
