#include "cli/why_options.h"

namespace lockstep::cli {
namespace {

Table make_why_table() {
  return {
      .program = "lockstep why",
      .summary = "Explains why a job waits, runs or has ended.",
      .examples =
          "lockstep why train.py\n"
          "lockstep why 'trial[12]' --on hpc\n"
          "lockstep why --from report.json",
      .details =
          "For a running job, shows what its ranks do, with the lines of Python. Ranks that\n"
          "do the same are one line, and no rank is stopped for that. For a failed job, names\n"
          "the worker that failed first, with the log and last words. For a job waiting for\n"
          "Slurm, also tells the expected start and what to change.",
      .epilog =
          "JOB is a name or id in the list of lockstep jobs, or Slurm's id (1234, 1234_7 of an\n"
          "array, 1234+1 of a heterogeneous job). It may be left out if only one job runs.\n"
          "JOB[12] or JOB[lr=1e-3] is a row of a sweep; --rank, --threads and --native take none.\n"
          "Exit code: 0; 1 if Slurm does not know the job, or the hosts or Slurm do not answer;\n"
          "2 if no job has this name.\n",
      .operands = Operands::names,
      .groups =
          {{"Options",
            {
                {.name = "on",
                 .field = into<&WhyOptions::on>,
                 .metavar = "CLUSTER|HOST",
                 .help = "the host with Slurm's commands: a cluster added with --slurm, or a "
                         "login host",
                 .shown_default = "where the job was submitted, else this machine"},
                {.name = "from",
                 .field = into<&WhyOptions::from>,
                 .metavar = "FILE",
                 .help = "explain a run that has ended, from the file that its --report wrote"},
                {.name = "rank",
                 .field = into<&WhyOptions::rank>,
                 .metavar = "R",
                 .help = "show all Python threads of this rank, and of its child processes"},
                {.name = "threads",
                 .field = into<&WhyOptions::threads>,
                 .help = "the same for every rank; ranks with the same threads are one block"},
                {.name = "native",
                 .field = into<&WhyOptions::native>,
                 .help = "also what these threads do below Python: the system call, and the "
                         "function of the library; without --rank and --threads for the main "
                         "threads"},
                {.name = "json", .field = into<&WhyOptions::json>, .help = "for programs"},
                help_option(),
                version_option(),
            }}},
      .shown_names = "[JOB]"};
}

}  // namespace

const Table& why_table() {
  static const Table table = make_why_table();
  return table;
}

}  // namespace lockstep::cli
