// lockstep slurm-batch: the process that a job's batch script becomes by exec on the first node.
// People do not call this.
#include "base/environment.h"
#include "base/text.h"
#include "cli/agents_step.h"
#include "cli/own_words.h"
#include "cli/subcommand.h"
#include "jobs/on_slurm/job_wheels.h"
#include "slurm/batch.h"
#include "slurm/job_folder.h"

#include <stdlib.h>

#include <string>
#include <utility>

namespace lockstep::cli {
namespace {

Result<ExitCode> batch_command(const Call& call) {
  // srun and sbcast are found through PATH, and a job submitted by cron may have no PATH.
  setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 0);
  slurm::BatchCall batch;
  std::string lead;
  std::string chain;
  bool unless_seen = false;
  bool script = false;
  auto step = read_own_words(call.words, batch.folder,
                             {{"--carry", &batch.carry},
                              {"--unless-seen", &unless_seen},
                              {"--requeue", &batch.requeue},
                              {"--chain", &chain},
                              {"--lead", &lead},
                              {"--script", &script}});
  if (!step) return refuse("lockstep slurm-batch", step.error());
  batch.step = std::move(*step);
  batch.beginning = beginning_of(batch.step, env_variable);
  // Our own script printed these numbers, so a default is enough for an unreadable one.
  batch.lead_s = static_cast<int>(parse_int(lead).value_or(0));
  if (!chain.empty()) batch.chain = static_cast<int>(parse_int(chain).value_or(0));
  if (unless_seen) batch.how = slurm::Carry::unless_seen;
  if (script) batch.role = slurm::BatchRole::script;
  // The folder of a row is made by the task that runs the row.
  if (const slurm::JobFolder folder(batch.folder); folder.number_of_row())
    LOCKSTEP_TRY(folder.make_row({"token", slurm::kRowsFile, jobs::on_slurm::kWheelsFile,
                                  jobs::on_slurm::kWheelsFolder, "lockstep", "launch.json", "shell",
                                  "bin", "task-bin"}));
  return slurm::Batch(batch).run().map(passed_on);
}

}  // namespace

extern constinit const Subcommand kSlurmBatch{
    .name = "slurm-batch",
    .summary = "a job's batch step: starts and watches the agents",
    .run = batch_command,
    .signals = Signals::blocked,
    .fails_with = always(ExitCode::failed),
    .listed = false};

}  // namespace lockstep::cli
