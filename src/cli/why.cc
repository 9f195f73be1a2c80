// lockstep why: explains the state of a job, wherever it runs, and what the user can do.
#include "base/log.h"
#include "base/text.h"
#include "cli/one_job.h"
#include "cli/subcommand.h"
#include "cli/why_options.h"
#include "hosts/command_run.h"
#include "hosts/place.h"
#include "hosts/registry.h"
#include "hosts/slurm_host.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "jobs/job_book.h"
#include "jobs/places/find_job.h"
#include "jobs/row_why.h"
#include "looks/threads_report.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <cstdio>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

using hosts::HostPlace;

constexpr std::size_t kMostReport = 8UL << 20;

// Runs `lockstep why` on the login host, and passes output and exit code on. The Slurm there may
// know jobs that this machine does not know.
Result<ExitCode> ask_login(const HostPlace& place, const std::string& word,
                           const WhyOptions& options) {
  std::vector<std::string> argv = {"why", "--on", std::string(hosts::kHere)};
  if (options.json) argv.emplace_back("--json");
  if (options.rank) argv.push_back(fmt::format("--rank={}", *options.rank));
  if (options.threads) argv.emplace_back("--threads");
  if (options.native) argv.emplace_back("--native");
  // "--": a job's name may begin with '-'.
  argv.insert(argv.end(), {"--", word});
  LOCKSTEP_TRY_ASSIGN(const auto endings,
                      hosts::run_command({.hosts = {place},
                                          .argv = std::move(argv),
                                          .own_binary = true,
                                          .input = hosts::CommandRequest::Input::none}));
  if (!endings.at(0).error.empty()) return fail(Errc::unavailable, endings[0].error);
  return passed_on(endings[0].code);
}

Result<looks::Question> question_of(const WhyOptions& options) {
  if (options.rank && options.threads)
    return fail(Errc::invalid_input, "--rank and --threads exclude each other");
  looks::Question question{.threads = options.threads, .native = options.native};
  if (options.rank) question.rank = static_cast<int>(*options.rank);
  return question;
}

Failure no_answer(const jobs::Job& job) {
  return fail(Errc::unavailable,
              "no agent of " + job.record().id + " has answered what its ranks do now",
              "lockstep why " + job.record().id + " says whether the job runs");
}

// Names the agents that do not know --threads or --native.
std::string deaf_words(const std::vector<std::string>& nodes, const looks::Question& question) {
  return fmt::format("the {} of {} {} of an older version of lockstep, without --{}",
                     nodes.size() == 1 ? "agent" : "agents", join(nodes, ", "),
                     nodes.size() == 1 ? "is" : "are", question.threads ? "threads" : "native");
}

// Shows the threads of all ranks, or their main threads.
Result<ExitCode> show_threads(jobs::Job& job, const looks::Question& question, bool json) {
  LOCKSTEP_TRY_ASSIGN(const auto answers, job.looks(question));
  // A job that does not run, and agents of much older versions, give no answer at all.
  if (answers.empty()) return no_answer(job);
  const auto deaf = looks::deaf_nodes(answers, question);
  if (deaf.size() == answers.size())
    return fail(Errc::unavailable, deaf_words(deaf, question),
                "--rank R shows the Python threads of one rank");
  if (!deaf.empty()) log::warning("{}", deaf_words(deaf, question));
  const std::string text =
      json ? looks::threads_json(answers) + "\n" : looks::threads_report(answers);
  if (text.empty())
    return fail(Errc::not_found, "no rank of " + job.record().id + " runs",
                "lockstep why " + job.record().id + " says what the job does");
  std::fputs(text.c_str(), stdout);
  return ExitCode::ok;
}

// Shows all threads of one rank.
Result<ExitCode> show_rank(jobs::Job& job, const looks::Question& question, bool json) {
  const int rank = *question.rank;
  LOCKSTEP_TRY_ASSIGN(const auto answers, job.looks(question));
  for (const looks::Answer& answer : answers) {
    if (answer.ranks.empty() || answer.ranks.front().state.empty()) continue;  // it has ended
    std::string text =
        json ? looks::answer_json(answer) + "\n" : looks::threads_text(answer.ranks.front());
    if (!json && question.native) text += looks::refusal_line(answer);
    std::fputs(text.c_str(), stdout);
    return ExitCode::ok;
  }
  // A job that does not run, and agents of much older versions, give no answer at all.
  if (answers.empty()) return no_answer(job);
  // An older agent takes "rank=3&native" for no rank at all.
  if (const auto deaf = looks::deaf_nodes(answers, question); !deaf.empty())
    return fail(Errc::unavailable, deaf_words(deaf, question),
                fmt::format("--rank {} alone shows the Python threads", rank));
  for (const looks::Answer& answer : answers)
    if (const auto node = looks::node_of(answer.fold, rank); answer.whole && !node.empty())
      return fail(Errc::unavailable,
                  fmt::format("rank {} of {} runs on {}, whose agent was not asked", rank,
                              job.record().id, node),
                  fmt::format("ask for it on {}", node));
  return fail(Errc::not_found, fmt::format("rank {} of {} does not run", rank, job.record().id));
}

ExitCode show(const jobs::Explanation& said, bool json) {
  const std::string text = json ? codec::print_json(said.json) + "\n" : said.text;
  std::fputs(text.c_str(), stdout);
  return ExitCode::ok;
}

Result<ExitCode> explain_file(const Call& call, const WhyOptions& options,
                              const looks::Question& question) {
  if (!call.parsed.names.empty() || !options.on.empty() || question.asks_threads())
    return fail(Errc::invalid_input,
                "--from names a file, so no job, host or rank can be named beside it");
  LOCKSTEP_TRY_ASSIGN(const std::string text, io::read_file(*options.from, kMostReport));
  const auto said = jobs::explain_report(text);
  if (!said) return fail(said.error().code, printable(*options.from) + ": " + said.error().message);
  return show(*said, options.json);
}

Result<ExitCode> explain_row(const jobs::places::RowOfJob& of_row, const WhyOptions& options,
                             const looks::Question& question) {
  if (question.asks_threads())
    return fail(Errc::invalid_input, "--rank, --threads and --native ask a whole job, not a row");
  const auto job = jobs::places::open_job(of_row.job);
  LOCKSTEP_TRY_ASSIGN(const auto said, jobs::why_row(*job, of_row.row));
  return show(said, options.json);
}

Result<ExitCode> explain_here(const std::string& word, const WhyOptions& options,
                              const looks::Question& question) {
  LOCKSTEP_TRY_ASSIGN(const auto book, jobs::JobBook::open_to_look(io::state_folder()));
  const auto of_row = jobs::places::find_row_of_job(book, word, "why");
  // As for a name without a row.
  if (!of_row && of_row.error().code == Errc::not_found)
    return fail(Errc::invalid_input, of_row.error().message, of_row.error().hint);
  if (!of_row) return Failure(of_row.error());
  if (*of_row) return explain_row(**of_row, options, question);
  LOCKSTEP_TRY_ASSIGN(auto known, jobs::places::find_job_to_explain(book, word));
  const auto job = jobs::places::open_job(std::move(known));
  // Asked first: why() asks the ranks, too, and each question to a Slurm job costs Slurm a step.
  Result<ExitCode> shown = ExitCode::ok;
  if (question.asks_threads()) {
    shown = question.rank ? show_rank(*job, question, options.json)
                          : show_threads(*job, question, options.json);
    if (shown || shown.error().code != Errc::unavailable) return shown;
  }
  const auto said = job->why();
  // Slurm's commands are not here. For a job of another owner, its host has answered.
  if (!said && said.error().code == Errc::not_found && said.error().hint.empty() &&
      options.on.empty() && job->facts().owner.empty())
    return fail(Errc::not_found, said.error().message,
                "where Slurm is elsewhere, name the login host with --on");
  if (!said) return Failure(said.error());
  if (!shown) return shown;
  return show(*said, options.json);
}

Result<ExitCode> explain(const Call& call) {
  WhyOptions options;
  fill(why_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(const looks::Question question, question_of(options));
  if (options.from) return explain_file(call, options, question);
  LOCKSTEP_TRY_ASSIGN(const NamedJob named, name_job(call, "why"));
  if (!options.on.empty()) {
    LOCKSTEP_TRY_ASSIGN(const auto registry, hosts::Registry::open(io::state_folder()));
    LOCKSTEP_TRY_ASSIGN(const auto place, hosts::slurm_place(registry, options.on));
    if (!place.here) return ask_login(place, named.word, options);
  }
  return explain_here(named.word, options, question);
}

}  // namespace

extern constinit const Subcommand kWhy{.name = "why",
                                       .summary = "explain why a job waits or has ended",
                                       .table = why_table,
                                       .run = explain,
                                       .signals = Signals::blocked};

}  // namespace lockstep::cli
