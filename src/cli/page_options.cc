#include "cli/page_options.h"

namespace lockstep::cli {
namespace {

Table make_page_table() {
  return {
      .program = "lockstep page",
      .summary = "Prints the address of a running job's status page, for a browser here.",
      .examples =
          "lockstep page train.py\n"
          "lockstep page --node 3 --port 8000 big-run",
      .details =
          "The job needs no option at its start: without --status-page, its agent opens the\n"
          "page now, on loopback. For a job on hosts, on rented machines or of Slurm, a port of\n"
          "127.0.0.1 leads to the page, over SSH or through srun, until Ctrl-C, which leaves\n"
          "the job alone.",
      .epilog =
          "JOB is a name or id in the list of lockstep jobs. It may be left out if only one\n"
          "job runs.\n"
          "Exit code: 0 after the address of a job on this machine; 1 if there is no page;\n"
          "130 after Ctrl-C.\n",
      .operands = Operands::names,
      .groups = {{"Options",
                  {
                      {.name = "node",
                       .field = into<&PageOptions::node>,
                       .metavar = "N",
                       .help = "the page of this node of the job, which shows its ranks in full",
                       .shown_default = "0, which knows all nodes; else the one on this machine"},
                      {.name = "port",
                       .field = into<&PageOptions::port>,
                       .metavar = "PORT",
                       .help = "port on this machine, for a job that runs elsewhere",
                       .shown_default = "a free one"},
                      {.name = "json",
                       .field = into<&PageOptions::json>,
                       .help = "for programs: an object with id, node and address"},
                      help_option(),
                      version_option(),
                  }}},
      .shown_names = "[JOB]"};
}

}  // namespace

const Table& page_table() {
  static const Table table = make_page_table();
  return table;
}

}  // namespace lockstep::cli
