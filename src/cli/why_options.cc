#include "cli/why_options.h"

namespace lockstep::cli {
namespace {

Table make_why_table() {
  return {
      .program = "lockstep why",
      .summary = "Explains why a job waits, how it runs or how it ended.",
      .examples =
          "lockstep why 1234\n"
          "lockstep why train.py\n"
          "lockstep why 1234_7 --on hpc",
      .details =
          "For a failed job, names the worker that failed first, with its log and its last\n"
          "words. For a job that waits for Slurm, also says when the job is expected to start,\n"
          "and what to change.",
      .epilog =
          "JOB is the name or id of a job that lockstep jobs lists, or Slurm's id (1234, 1234_7\n"
          "of an array, 1234+1 of a heterogeneous job).\n"
          "Exit code: 0; 1 if no such job is known, or its hosts or Slurm do not answer.\n",
      .operands = Operands::names,
      .groups = {{"Options",
                  {
                      {.name = "on",
                       .field = into<&WhyOptions::on>,
                       .metavar = "CLUSTER|HOST",
                       .help = "where Slurm's commands are: a cluster that was added with "
                               "--slurm, or a login host",
                       .shown_default = "where the job was submitted, else this machine"},
                      {.name = "json", .field = into<&WhyOptions::json>, .help = "for programs"},
                      help_option(),
                      version_option(),
                  }}},
      .shown_names = "JOB"};
}

}  // namespace

const Table& why_table() {
  static const Table table = make_why_table();
  return table;
}

}  // namespace lockstep::cli
