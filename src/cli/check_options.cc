#include "cli/check_options.h"

namespace lockstep::cli {
namespace {

Table make_check_table() {
  return {
      .program = "lockstep check",
      .summary = "Finds mistakes in a job before Slurm queues it.",
      .examples =
          "lockstep check train.slurm\n"
          "lockstep check submit -N 2 --gpus-per-node 8 -- train.py --deepspeed ds.json\n"
          "lockstep check --hostfile hosts.txt",
      .details =
          "Reads a batch script, a command line of sbatch or lockstep submit, a hostfile or\n"
          "DeepSpeed's configuration. Prints a line for each mistake: the place, the reason\n"
          "and what to write instead. Nothing is submitted.",
      .epilog =
          "docs/slurm.md lists the mistakes. Where Slurm is installed, sbatch\n"
          "--test-only checks partitions and limits, too, and tells the expected start.\n"
          "Exit code: 0, 1 where there is an error (warnings are none), 2 for bad words.\n",
      .operands = Operands::command,
      .groups =
          {{"Options",
            {
                {.name = "hostfile",
                 .field = into<&CheckOptions::hostfiles>,
                 .metavar = "FILE",
                 .help = "check this hostfile by DeepSpeed's grammar; may be given again"},
                {.name = "ds-config",
                 .field = into<&CheckOptions::ds_configs>,
                 .metavar = "FILE",
                 .help = "check this configuration of DeepSpeed; may be given again. The "
                         "configuration of the job is always checked, against ranks and arguments"},
                {.name = "no-slurm",
                 .field = into<&CheckOptions::no_slurm>,
                 .help = "do not ask sbatch"},
                {.name = "json", .field = into<&CheckOptions::json>, .help = "for programs"},
                help_option(),
                version_option(),
            }}},
      .shown_names = "SCRIPT|sbatch ... SCRIPT|submit ..."};
}

}  // namespace

const Table& check_table() {
  static const Table table = make_check_table();
  return table;
}

}  // namespace lockstep::cli
