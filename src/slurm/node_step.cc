#include "slurm/node_step.h"

#include "base/log.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <utility>

namespace lockstep::slurm {
namespace {

// A thousand nodes shall not ask a file system a thousand times a second.
std::chrono::milliseconds pause_between_looks(std::size_t nodes) {
  constexpr std::size_t kMilliseconds = 1000;
  constexpr std::size_t kPerNode = 5;
  return std::chrono::milliseconds(kMilliseconds + kPerNode * nodes);
}

}  // namespace

NodeStep::NodeStep(std::string folder)
    : folder_(std::move(folder)),
      run_(run_number(folder_)),
      name_(variable("SLURMD_NODENAME")),
      pause_(pause_between_looks(nodes_of_job().size())),
      next_look_(loop_),
      last_words_(loop_),
      next_end_(loop_),
      out_(loop_, STDOUT_FILENO),
      err_(loop_, STDERR_FILENO) {}

Result<int> NodeStep::run(const std::vector<std::string>& agent) {
  LOCKSTEP_TRY_ASSIGN(signals_,
                      proc::SignalWatch::open(loop_, [this](int number) { on_signal(number); }));
  prctl(PR_SET_NAME, "lockstep-node");
  LOCKSTEP_TRY(start(agent));
  next_look_.start(pause_, [this] { look(); });
  loop_.run();
  const int code = agent_->exit() ? agent_->exit()->shell_code() : 1;
  if (!deputy_) return code;
  concluding_ = true;
  return deputy_->conclude({.step_code = code, .stop_signal = stopped_});
}

Status NodeStep::start(const std::vector<std::string>& agent) {
  proc::SpawnSpec spec;
  spec.executable = "/proc/self/exe";
  spec.argv = agent;
  for (char** entry = environ; *entry != nullptr; ++entry)
    spec.env.emplace_back(*entry);
  // The ranks have the time that is left until the limit; a moment of it is for the end of the job.
  constexpr int kForTheEnd = 20;
  if (const auto state = folder_.state(); state && state->lead_s > kForTheEnd)
    spec.env.push_back(fmt::format("LOCKSTEP_STOP_TIMEOUT={}", state->lead_s - kForTheEnd));
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

// Where Slurm tracks processes by control groups, it tells the first process of a task only.
void NodeStep::on_signal(int number) {
  if (number == SIGCHLD || number == SIGWINCH) return;
  if (number == SIGTERM || number == SIGINT) stopped_ = true;
  if (agent_ && agent_->alive()) kill(agent_->pid(), number);
}

// What the agent has left behind may still hold its output.
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
  constexpr std::chrono::milliseconds kSoon{5};
  if (may_leave()) return loop_.stop();
  if (!all_is_said()) next_end_.start(kSoon, [this] { leave_when_said(); });
}

void NodeStep::look() {
  next_look_.start(pause_, [this] { look(); });
  if (epoch_ > 0)
    watch(epoch_).beat(name_, fmt::format("{}{}", ++looks_, agent_->alive() ? "" : " ended"));
  if (deputy_) {
    deputy_->look();
  } else {
    lease_.look(watch(epoch_).read(kLease));
    if (watch(epoch_ + 1).is_claimed())
      go_on_in(epoch_ + 1);
    else if (lease_.is_gone())
      claim();
  }
  if (may_leave()) loop_.stop();
}

bool NodeStep::all_is_said() const {
  return out_.is_done() && err_.is_done();
}

bool NodeStep::may_leave() const {
  if (concluding_ || agent_->alive() || !all_is_said()) return false;
  if (deputy_) return deputy_->is_alone();
  if (epoch_ == 0) {
    // A batch step that is not heard of any more may have died just before the end.
    constexpr int kFresh = 1;
    return lease_.looks() <= kFresh;
  }
  const auto state = folder_.state();
  return state && state->run == run_ && state->stage != Stage::running;
}

void NodeStep::claim() {
  const WatchFolder next = watch(epoch_ + 1);
  auto state = folder_.state();
  if (!state || !next.claim()) return;
  go_on_in(epoch_ + 1);
  if (state->run == run_)
    deputy_ = std::make_unique<Deputy>(loop_, folder_.path(), next, std::move(*state));
}

// Our own words go into the log as well.
void NodeStep::go_on_in(int epoch) {
  epoch_ = epoch;
  lease_ = Silence();
  io::Fd log(open(watch(epoch).at(name_ + ".log").c_str(),
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
