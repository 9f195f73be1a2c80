#include "cli/job_options.h"

namespace lockstep::cli {
namespace {

Table make_jobs_table() {
  return {.program = "lockstep jobs",
          .summary = "Lists this user's jobs on other machines, and the runs on this machine.",
          .examples =
              "lockstep jobs\n"
              "lockstep jobs --offline\n"
              "lockstep jobs --json -n 100",
          .details = "Asks the hosts of unfinished jobs for the state.",
          .epilog = "",
          .operands = Operands::none,
          .groups = {
              {"Options",
               {
                   {.name = "json", .field = into<&JobsOptions::json>, .help = "for programs"},
                   {.name = "offline", .field = into<&JobsOptions::offline>, .help = "ask no host"},
                   {.name = "most",
                    .field = into<&JobsOptions::most>,
                    .metavar = "N",
                    .help = "so many, the newest first",
                    .shown_default = "20",
                    .letter = 'n'},
                   help_option(),
                   version_option(),
               }}}};
}

Table make_logs_table() {
  return {
      .program = "lockstep logs",
      .summary = "Prints the output of a job from the start.",
      .examples =
          "lockstep logs -f 3f0a9c1e\n"
          "lockstep logs -n 100 --rank 3 train.py",
      .details =
          "Lines of several hosts start with the host's name. Stopping this command does\n"
          "not stop the job.",
      .epilog = "JOB is an id, the beginning of one, or a name (the newest job of that name).\n",
      .operands = Operands::names,
      .groups = {{"Options",
                  {
                      {.name = "follow",
                       .field = into<&LogsOptions::follow>,
                       .help = "go on until the job ends; the exit code is the job's",
                       .letter = 'f'},
                      {.name = "lines",
                       .field = into<&LogsOptions::lines>,
                       .metavar = "N",
                       .help = "only the last N lines of each host's output and errors",
                       .letter = 'n'},
                      {.name = "rank",
                       .field = into<&LogsOptions::rank>,
                       .metavar = "R",
                       .help = "only lines of this rank"},
                      {.name = "fold",
                       .field = into<&LogsOptions::fold>,
                       .metavar = "WHEN",
                       .help = "show equal lines of ranks once; auto: on a terminal",
                       .shown_default = "auto",
                       .choices = {"auto", "always", "never"}},
                      {.name = "json",
                       .field = into<&LogsOptions::json>,
                       .help = "for programs: an object on each line"},
                      help_option(),
                      version_option(),
                  }}},
      .shown_names = "JOB"};
}

Option ending_json() {
  return {.name = "json", .field = into<&EndingOptions::json>, .help = "for programs"};
}

Table make_wait_table() {
  return {
      .program = "lockstep wait",
      .summary = "Waits until a job has ended, and exits with the job's exit code.",
      .examples =
          "lockstep wait 3f0a9c1e\n"
          "lockstep wait --json train.py",
      .epilog =
          "JOB is an id, the beginning of an id, or a name. A name means the newest job of that\n"
          "name that still runs, or the newest of all if every job of that name has ended.\n",
      .operands = Operands::names,
      .groups = {{"Options", {ending_json(), help_option(), version_option()}}},
      .shown_names = "JOB"};
}

Table make_cancel_table() {
  return {
      .program = "lockstep cancel",
      .summary = "Ends a job on all hosts.",
      .examples =
          "lockstep cancel 3f0a9c1e\n"
          "lockstep cancel train.py",
      .details =
          "The job ends as SIGTERM ends lockstep run. The command returns when nothing of\n"
          "the job is left. A second cancel meanwhile no longer waits for the workers.",
      .epilog = "JOB is an id, the beginning of an id, or the name of a job that has not ended.\n",
      .operands = Operands::names,
      .groups = {{"Options", {ending_json(), help_option(), version_option()}}},
      .shown_names = "JOB"};
}

std::vector<Option> with_variables() {
  std::vector<Option> options = variable_rows();
  options.push_back({.name = "json", .field = into<&ResumeOptions::json>, .help = "for programs"});
  options.push_back(help_option());
  options.push_back(version_option());
  return options;
}

Table make_resume_table() {
  return {.program = "lockstep resume",
          .summary = "Starts the lost parts of a job again.",
          .examples =
              "lockstep resume 3f0a9c1e\n"
              "lockstep resume train.py --secret WANDB_API_KEY",
          .details =
              "A part is lost if its host was switched off and is back, or if the job's\n"
              "supervisor was killed there. The other nodes wait for the part as lockstep run\n"
              "waits for a lost node. Nothing is started on a host that does not answer, since\n"
              "its part may still run.",
          .epilog =
              "JOB is an id, the beginning of an id, or a name. The variables of --env and\n"
              "--env-file are kept here with the job. Secrets are not kept: give them again.\n",
          .operands = Operands::names,
          .groups = {{"Options", with_variables()}},
          .shown_names = "JOB"};
}

}  // namespace

const Table& jobs_table() {
  static const Table table = make_jobs_table();
  return table;
}
const Table& logs_table() {
  static const Table table = make_logs_table();
  return table;
}
const Table& wait_table() {
  static const Table table = make_wait_table();
  return table;
}
const Table& cancel_table() {
  static const Table table = make_cancel_table();
  return table;
}

const Table& resume_table() {
  static const Table table = make_resume_table();
  return table;
}

ResumeOptions resume_options(const Parsed& parsed) {
  ResumeOptions options;
  fill(resume_table(), parsed, options);
  fill(resume_table(), parsed, options.variables);
  return options;
}

}  // namespace lockstep::cli
