#include "cli/doctor_options.h"

namespace lockstep::cli {
namespace {

Table make_doctor_table() {
  return {
      .program = "lockstep doctor",
      .summary = "Finds problems of this node for training and for building extensions.",
      .examples =
          "lockstep doctor\n"
          "lockstep doctor --python venv/bin/python\n"
          "lockstep doctor --json",
      .details =
          "Names a cure for each problem. Compares the C++ compiler, CUDA and PyTorch, and\n"
          "looks at GPUs, NCCL, DeepSpeed's ops, disks, /dev/shm, limits, ports, the clock and\n"
          "Slurm. Imports neither PyTorch nor DeepSpeed. lockstep cluster check asks other\n"
          "hosts.",
      .epilog = "Exit code: 0, 1 where something would stop a job or a build.\n",
      .operands = Operands::none,
      .groups = {{"Options",
                  {
                      {.name = "python",
                       .field = into<&DoctorOptions::python>,
                       .metavar = "PATH",
                       .help = "the Python to look at",
                       .shown_default = "the project's environment, else python3"},
                      {.name = "json",
                       .field = into<&DoctorOptions::json>,
                       .help = "for programs, with all facts"},
                      help_option(),
                      version_option(),
                  }}}};
}

}  // namespace

const Table& doctor_table() {
  static const Table table = make_doctor_table();
  return table;
}

}  // namespace lockstep::cli
