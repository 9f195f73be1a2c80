// The parts of Batch for a user's own script (BatchRole::script).
#include "io/fd.h"
#include "proc/tool_output.h"
#include "slurm/bad_node_notes.h"
#include "slurm/batch.h"
#include "slurm/old_environment.h"
#include "slurm/old_script.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>

namespace lockstep::slurm {
// Hides the spares and puts the stand-ins first in PATH: the script must see the cluster that the
// user asked for.
std::vector<std::string> Batch::environment_of_script() const {
  Variables variables = variables_of(proc::own_environment());
  int spares = 0;
  if (const auto text = io::read_file(run_.folder().at("launch.json")))
    if (const auto settings = settings_from_text(*text)) spares = settings->spares;
  hide_spares(nodes_of_job(), spares, variables);
  show_stand_ins(run_.folder().path(), "bin", variables);
  return environment_of(variables);
}

// Forwards a signal to the script's shell only, as Slurm does for a batch script. The pidfd cannot
// hit another process if the shell has just ended.
void Batch::pass_on(int number) {
  if (step_ && step_->alive())
    (void)syscall(SYS_pidfd_send_signal, step_->pidfd(), number, nullptr, 0);
}

// Judges the last launch of this run. Its verdict explains the end of the script better than the
// script's exit code.
std::optional<Verdict> Batch::last_launch() const {
  const int run = run_number(run_.folder());
  for (const std::string& path : run_.folder().launches()) {
    const JobFolder launch(path);
    const auto state = launch.state();
    if (!state || state->run != run) continue;
    std::vector<NodeReport> reports;
    for (const std::string& text : launch.reports(run))
      if (auto report = read_report(text)) reports.push_back(std::move(*report));
    Verdict verdict = judge({.step_code = state->code}, reports, nodes_of_job());
    verdict.unfit = unfit_nodes(launch, run);
    verdict.noted = true;
    return verdict;
  }
  return std::nullopt;
}

// Waits until all launches have ended. A stopped shell ends at once, but the ranks of its launches
// still write checkpoints.
void Batch::await_launches() {
  constexpr std::chrono::milliseconds kPause{100};
  constexpr int kTries = 3000;  // 5 minutes; Slurm's KillWait ends earlier
  if (!facts_.stop_signal && !facts_.lead_signal) return;
  const int run = run_number(run_.folder());
  for (int i = 0; i < kTries; ++i) {
    bool running = false;
    for (const std::string& path : run_.folder().launches()) {
      const auto state = JobFolder(path).state();
      running = running || (state && state->run == run && state->stage == Stage::running);
    }
    if (!running) return;
    run_.pause(kPause);
  }
}

}  // namespace lockstep::slurm
