#include "cli/job_options.h"

namespace lockstep::cli {
namespace {

Table make_jobs_table() {
  return {.program = "lockstep jobs",
          .summary =
              "Lists the jobs that this user started on other machines with lockstep run\n"
              "--on, and the runs of this machine that are under way. The hosts of jobs that\n"
              "have not ended are asked how they stand.",
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
      .summary =
          "Prints what a job has said, from its beginning; lines of several hosts have the\n"
          "host's name before them. The job goes on whatever becomes of this command.\n\n"
          "  lockstep logs -f 3f0a9c1e\n"
          "  lockstep logs -n 100 --rank 3 train.py",
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
                       .help = "equal lines of ranks as one; auto: on a terminal",
                       .shown_default = "auto",
                       .choices = {"auto", "always", "never"}},
                      {.name = "json",
                       .field = into<&LogsOptions::json>,
                       .help = "for programs: one object a line"},
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
      .summary = "Waits until a job has ended. The exit code is the job's.",
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
      .summary =
          "Ends a job on all of its hosts, as SIGTERM ends lockstep run, and waits until\n"
          "nothing of it is left. A second one while it ends waits for workers no longer.",
      .epilog = "JOB is an id, the beginning of one, or the name of one job that has not ended.\n",
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
  return {
      .program = "lockstep resume",
      .summary =
          "Starts those parts of a job again that ended without a word: the host was\n"
          "switched off and is back, or the job's supervisor was killed there. The other\n"
          "nodes wait for them as lockstep run waits for a lost node.",
      .epilog =
          "JOB is an id, the beginning of one, or a name. What --env and --env-file gave to the\n"
          "job is kept here with it; secrets are not: give them again.\n",
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
