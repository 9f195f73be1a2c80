#include "slurm/node_step.h"

#include "base/environment.h"
#include "base/log.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <utility>

namespace lockstep::slurm {
namespace {

// Returns the pause between looks at the shared folder, longer for more nodes: with 1000 nodes,
// each looks every 6 s.
std::chrono::milliseconds pause_between_looks(std::size_t nodes) {
  constexpr std::size_t kMilliseconds = 1000;
  constexpr std::size_t kPerNode = 5;
  return std::chrono::milliseconds(kMilliseconds + kPerNode * nodes);
}

}  // namespace

NodeStep::NodeStep(std::string folder)
    : folder_(std::move(folder)),
      run_(run_number(folder_)),
      name_(env_text("SLURMD_NODENAME")),
      pause_(pause_between_looks(nodes_of_job().size())),
      next_look_(loop_),
      last_words_(loop_),
      next_end_(loop_),
      out_(loop_, STDOUT_FILENO),
      err_(loop_, STDERR_FILENO) {}

Result<int> NodeStep::run(const std::vector<std::string>& agent) {
  LOCKSTEP_TRY_ASSIGN(signals_,
                      proc::SignalWatch::open(loop_, [this](int number) { on_signal(number); }));
  // For ps and top, beside the agent, which is the same binary.
  prctl(PR_SET_NAME, "lockstep-node");
  LOCKSTEP_TRY(start(agent));
  next_look_.start(pause_, [this] { look(); });
  loop_.run();
  const int code = agent_->exit() ? agent_->exit()->shell_code() : 1;
  // srun ends with the highest code of all nodes. That of the node that refused tells the cause.
  if (!deputy_) return agent_told_to_end_ ? 0 : code;
  // The deputy runs the loop again while it concludes. look() must not stop that loop.
  concluding_ = true;
  return deputy_->conclude({.step_code = code, .stop_signal = stopped_});
}

Status NodeStep::start(const std::vector<std::string>& agent) {
  proc::SpawnSpec spec;
  // The binary's file may be deleted by now (--drop-binary).
  spec.executable = "/proc/self/exe";
  spec.argv = agent;
  for (char** entry = environ; *entry != nullptr; ++entry)
    spec.env.emplace_back(*entry);
  // Let the ranks use the time until the limit for their checkpoint, but keep some seconds to
  // conclude the job.
  constexpr int kForTheEnd = 20;
  if (const auto state = folder_.state(); state && state->lead_s > kForTheEnd)
    spec.env.push_back(fmt::format("LOCKSTEP_STOP_TIMEOUT={}", state->lead_s - kForTheEnd));
  // The login host reads traces of profiles there.
  spec.env.push_back("LOCKSTEP_PROFILE_PLACE=" + folder_.path());
  LOCKSTEP_TRY_ASSIGN(const io::Fd out, out_.open());
  LOCKSTEP_TRY_ASSIGN(const io::Fd err, err_.open());
  spec.stdout_fd = out.get();
  spec.stderr_fd = err.get();
  LOCKSTEP_TRY_ASSIGN(agent_, proc::spawn(spec));
  agent_end_.emplace(loop_, agent_->pidfd());
  agent_end_->start(io::kReadable, [this](int) {
    if (agent_->reap()) on_end();
  });
  return {};
}

// Forwards signals to the agent. With control groups, Slurm signals only the first process of a
// task.
void NodeStep::on_signal(int number) {
  if (number == SIGCHLD || number == SIGWINCH) return;
  if (number == SIGTERM || number == SIGINT) stopped_ = true;
  if (agent_ && agent_->alive()) kill(agent_->pid(), number);
}

// Waits for the last output, at most two seconds: processes that the agent left behind may hold the
// pipe open.
void NodeStep::on_end() {
  constexpr std::chrono::seconds kLongest{2};
  agent_end_.reset();
  last_words_.start(kLongest, [this] {
    out_.give_up();
    err_.give_up();
  });
  leave_when_said();
}

void NodeStep::leave_when_said() {
  // srun takes output at its own pace, so poll until all is written.
  constexpr std::chrono::milliseconds kSoon{5};
  if (may_leave()) return loop_.stop();
  if (!all_is_said()) next_end_.start(kSoon, [this] { leave_when_said(); });
}

void NodeStep::look() {
  next_look_.start(pause_, [this] { look(); });
  // In epoch 0 only the batch step has a heartbeat, which saves writes while all is well.
  if (epoch_ > 0) watch(epoch_).beat(name_, beat_text(++looks_, !agent_->alive()));
  if (deputy_) {
    deputy_->look();
  } else {
    const std::string lease = watch(epoch_).read(kLease);
    lease_.look(lease);
    if (tells_to_end(lease)) end_agent();
    if (watch(epoch_ + 1).is_claimed())
      go_on_in(epoch_ + 1);
    else if (lease_.is_gone())
      claim();
  }
  if (may_leave()) loop_.stop();
}

// A second signal would cost the agent its time to report. The code of an agent that is gone
// already, as that of the node that refused, stays the node's.
void NodeStep::end_agent() {
  if (!agent_->alive() || std::exchange(agent_told_to_end_, true)) return;
  kill(agent_->pid(), SIGTERM);
}

bool NodeStep::all_is_said() const {
  return out_.is_done() && err_.is_done();
}

bool NodeStep::may_leave() const {
  if (concluding_ || agent_->alive() || !all_is_said()) return false;
  if (deputy_) return deputy_->is_alone();
  if (epoch_ == 0) {
    // Leave only while the batch step's heartbeat is fresh. If the batch step has died just before
    // the end, this process must stay to take over.
    constexpr int kFresh = 1;
    return lease_.looks() <= kFresh;
  }
  const auto state = folder_.state();
  return state && state->run == run_ && state->stage != Stage::running;
}

// Tries to become the deputy. mkdir lets one node succeed.
void NodeStep::claim() {
  const WatchFolder next = watch(epoch_ + 1);
  auto state = folder_.state();
  if (!state || !next.claim()) return;
  go_on_in(epoch_ + 1);
  // A later run has its own batch step.
  if (state->run == run_)
    deputy_ = std::make_unique<Deputy>(loop_, folder_.path(), next, std::move(*state));
}

// Switches to a new epoch: the agent's output and this process's own log now go to NAME.log,
// because srun died with the batch step. The deputy copies that file to the job's output.
void NodeStep::go_on_in(int epoch) {
  epoch_ = epoch;
  lease_ = HeartbeatWatch();
  io::Fd log(open(watch(epoch).at(watch_log(name_)).c_str(),
                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) return;
  const auto state = folder_.state();
  const std::string output = state ? state->output : "";
  out_.go_on_in(log.get(), output);
  err_.go_on_in(log.get(), output);
  dup2(log.get(), STDOUT_FILENO);
  dup2(log.get(), STDERR_FILENO);
  log_ = std::move(log);
}

}  // namespace lockstep::slurm
