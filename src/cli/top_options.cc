#include "cli/top_options.h"

namespace lockstep::cli {
namespace {

Table make_top_table() {
  return {.program = "lockstep top",
          .summary = "Shows what every rank of a running job does, as a table that renews itself.",
          .examples =
              "lockstep top\n"
              "lockstep top train.py --sort state\n"
              "lockstep top pid-4711 --once --rank 3",
          .details =
              "Keys: up and down (or j and k) choose a line, Enter shows one of its ranks with\n"
              "all threads, s sorts, / filters, f shows every rank on a line of its own, q\n"
              "quits. Ctrl-C ends this command, and not the job. Ranks that do the same are one\n"
              "line, which has the means of their numbers.",
          .epilog =
              "JOB is a name or id in the list of lockstep jobs. It may be left out if only one\n"
              "job runs.\n"
              "Exit code: 0; 1 if the job does not run or its hosts do not answer; 130 after\n"
              "Ctrl-C.\n",
          .operands = Operands::names,
          .groups = {{"Options",
                      {
                          {.name = "once",
                           .field = into<&TopOptions::once>,
                           .help = "print the table once; without a terminal, this is always so"},
                          {.name = "sort",
                           .field = into<&TopOptions::sort>,
                           .metavar = "KEY",
                           .help = "the column that sorts the table",
                           .shown_default = "rank",
                           .choices = {"rank", "node", "state", "wait", "input", "cpu", "memory",
                                       "gpu", "output", "step"}},
                          {.name = "rank",
                           .field = into<&TopOptions::rank>,
                           .metavar = "R",
                           .help = "show this rank in full"},
                          {.name = "interval",
                           .field = into<&TopOptions::interval>,
                           .metavar = "SECONDS",
                           .help = "time between two tables; at least 10 for a job on Slurm",
                           .shown_default = "1"},
                          {.name = "json",
                           .field = into<&TopOptions::json>,
                           .help = "for programs: print all ranks once"},
                          help_option(),
                          version_option(),
                      }}},
          .shown_names = "[JOB]"};
}

}  // namespace

const Table& top_table() {
  static const Table table = make_top_table();
  return table;
}

}  // namespace lockstep::cli
