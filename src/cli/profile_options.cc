#include "cli/profile_options.h"

namespace lockstep::cli {
namespace {

Table make_profile_table() {
  return {
      .program = "lockstep profile",
      .summary = "Takes a PyTorch profile of a running job.",
      .examples =
          "lockstep profile --steps 5 -o prof train.py\n"
          "lockstep profile --seconds 2 --ranks 0-3 JOB",
      .details =
          "Asks Kineto, the profiler inside PyTorch, without a line in the script. The job\n"
          "must have been started with --profile. It may run on this machine, on hosts, on\n"
          "rented machines or on Slurm. Writes rank-N.json for each rank, and profile.json\n"
          "with all of them, for https://ui.perfetto.dev. A rank fetches its order within\n"
          "5 s. With --seconds the ranks of a machine then begin at one moment.",
      .epilog =
          "JOB is an id or name of lockstep jobs, or the name of a script on this machine. "
          "Without\n"
          "JOB, the only job that runs is meant. Exit code: 0; 1 if a rank has no trace; the "
          "reason is\n"
          "printed for each.\n",
      .operands = Operands::names,
      .groups = {{"Options",
                  {
                      {.name = "steps",
                       .field = into<&ProfileOptions::steps>,
                       .metavar = "N",
                       .help = "steps of an optimizer to profile",
                       .shown_default = "5"},
                      {.name = "seconds",
                       .field = into<&ProfileOptions::seconds>,
                       .metavar = "S",
                       .help = "time to profile, for scripts without torch.optim"},
                      {.name = "multiple-of",
                       .field = into<&ProfileOptions::multiple_of>,
                       .metavar = "M",
                       .help = "begin with a step whose number is a multiple of M, so that ranks "
                               "profile the same steps",
                       .shown_default = "1"},
                      {.name = "ranks",
                       .field = into<&ProfileOptions::ranks>,
                       .metavar = "LIST",
                       .help = "ranks to profile, such as 0-3,7",
                       .shown_default = "all"},
                      {.name = "output",
                       .field = into<&ProfileOptions::output>,
                       .metavar = "DIR",
                       .help = "the folder for the traces",
                       .shown_default = "profile-JOB",
                       .letter = 'o'},
                      {.name = "timeout",
                       .field = into<&ProfileOptions::timeout>,
                       .metavar = "SECONDS",
                       .help = "the longest wait for the traces",
                       .shown_default = "120"},
                      help_option(),
                      version_option(),
                  }}},
      .shown_names = "[JOB]"};
}

}  // namespace

const Table& profile_table() {
  static const Table table = make_profile_table();
  return table;
}

}  // namespace lockstep::cli
