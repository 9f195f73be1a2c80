// lockstep why: explains the state of a job, wherever it runs, and what the user can do.
#include "base/text.h"
#include "cli/owner_host.h"
#include "cli/subcommand.h"
#include "cli/why_options.h"
#include "hosts/command_run.h"
#include "hosts/place.h"
#include "hosts/registry.h"
#include "hosts/slurm_host.h"
#include "io/own_folders.h"
#include "jobs/here/local_job.h"
#include "jobs/job_book.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "jobs/on_slurm/slurm_why.h"
#include "jobs/places/find_job.h"
#include "proc/signals.h"
#include "slurm/job_report.h"

#include <fmt/core.h>

#include <cstdio>
#include <optional>
#include <utility>

namespace lockstep::cli {
namespace {

using hosts::HostPlace;
using jobs::KnownJob;

Result<std::string> one_job(const Parsed& parsed) {
  if (parsed.names.empty())
    return fail(Errc::invalid_input, "no job is named", "write lockstep why JOB");
  if (parsed.names.size() > 1)
    return fail(Errc::invalid_input,
                fmt::format("'{}' is one word too many", printable(parsed.names[1])));
  return parsed.names[0];
}

// Runs `lockstep why` on the login host, which has the job's folder, and passes its output and exit
// code on.
Result<ExitCode> ask_login(const HostPlace& place, const std::string& word, bool json) {
  std::vector<std::string> argv = {"why", "--on", std::string(hosts::kHere)};
  if (json) argv.emplace_back("--json");
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

Result<ExitCode> print(const jobs::Explanation& said, bool json) {
  if (json)
    std::puts(codec::print_json(said.json).c_str());
  else
    std::fputs(said.text.c_str(), stdout);
  return ExitCode::ok;
}

Result<ExitCode> explain_here(const std::string& word, const std::optional<KnownJob>& known,
                              const WhyOptions& options) {
  if (known) {
    LOCKSTEP_TRY_ASSIGN(const auto said, jobs::places::open_job(*known)->why());
    return print(said, options.json);
  }
  if (!slurm::is_job_id(word))
    return fail(Errc::invalid_input,
                fmt::format("'{}' is neither a Slurm job id nor a job in the list of lockstep jobs",
                            printable(word)),
                "write a number, as in sbatch and squeue, or a name");
  const auto said = jobs::on_slurm::explain_slurm_job(word, nullptr);
  if (!said && said.error().code == Errc::not_found && said.error().hint.empty() &&
      options.on.empty())
    return fail(Errc::not_found, said.error().message,
                "where Slurm is elsewhere, name the login host with --on");
  if (!said) return Failure(said.error());
  return print(*said, options.json);
}

Result<ExitCode> explain(const Call& call) {
  WhyOptions options;
  fill(why_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(const std::string word, one_job(call.parsed));
  LOCKSTEP_TRY_ASSIGN(const auto there, pass_to_owner(call, {"why"}));
  if (there) return *there;
  if (!options.on.empty()) {
    LOCKSTEP_TRY_ASSIGN(const auto registry, hosts::Registry::open(io::state_folder()));
    LOCKSTEP_TRY_ASSIGN(const auto place, hosts::slurm_place(registry, options.on));
    if (!place.here) return ask_login(place, word, options.json);
  }
  if (const auto run = jobs::here::find_local_job(word)) return explain_here(word, *run, options);
  LOCKSTEP_TRY_ASSIGN(const auto book, jobs::JobBook::open(io::state_folder()));
  // A job of plain sbatch is not in the job book. Slurm may still know the word.
  auto found = jobs::on_slurm::find_job(book, word);
  if (!found && found.error().code != Errc::not_found) return Failure(found.error());
  std::optional<KnownJob> known;
  if (found) known = std::move(*found);
  // A word of digits means Slurm's number first, even if the id of a job of ours begins with it.
  if (known && known->id != word && slurm::is_job_id(word) &&
      (!jobs::on_slurm::slurm_place(*known) || jobs::on_slurm::begins_only(*known, word)))
    known.reset();
  // A job with a node was submitted on that login host, and the job's folder is there.
  if (known && jobs::on_slurm::slurm_place(*known) && !known->nodes.empty() && options.on.empty())
    return ask_login(known->nodes.front(), known->id, options.json);
  return explain_here(word, known, options);
}

}  // namespace

extern constinit const Subcommand kWhy{.name = "why",
                                       .summary = "explain why a job waits or has ended",
                                       .table = why_table,
                                       .run = explain,
                                       .signals = Signals::blocked};

}  // namespace lockstep::cli
