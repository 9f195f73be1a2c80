#include "cli/owner_host.h"

#include "base/clock_ms.h"
#include "base/mid_line.h"
#include "base/text.h"
#include "cli/on_demand.h"
#include "hosts/command_run.h"
#include "io/own_folders.h"
#include "jobs/rented/owned_view.h"
#include "jobs/rented/owner_words.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"
#include "project/sync_tree.h"
#include "rent/guard_hosts.h"
#include "rent/job_claim.h"

#include <fmt/core.h>

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {

using cloud::RentedJob;
using jobs::rented::Asked;
using jobs::rented::OwnedState;
using jobs::rented::OwnedStep;

// A plan asks all providers, and the binary may have to be copied first.
constexpr std::chrono::seconds kAskPatience{600};
// Commands about other jobs ask for the state, too: a host that hangs must not hold them for long.
constexpr std::chrono::seconds kStatePatience{60};
constexpr std::size_t kMostAnswer = 4UL << 20;
constexpr long kClaimPauseNs = 100'000'000;

Args words_of(const Args& argv) {
  Args words = {jobs::rented::kHostRental};
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

std::string going_on_words(const RentedJob& job) {
  return fmt::format(
      "'{0}' goes on at {1}; lockstep logs -f {0} shows it, lockstep down {0} ends it", job.cluster,
      job.host);
}

// Returns the ending of the command on the host, or why it did not run there.
Result<hosts::HostEnding> ending_of(const Result<std::vector<hosts::HostEnding>>& endings,
                                    Asked& asked) {
  if (!endings) return Failure(endings.error());
  const hosts::HostEnding& ending = endings->front();
  asked = ending.error.empty() ? Asked::ended : ending.unasked ? Asked::never : Asked::unanswered;
  if (asked == Asked::ended) return ending;
  if (const int signal = proc::SignalWatch::take_stop())
    return Failure(Error{Errc::canceled, "stopped by the user", {}, signal});
  return fail(Errc::unavailable, ending.error);
}

// Brings the files of one path. false: the host cannot read the path.
Result<bool> bring_path(std::string_view program, const hosts::HostPlace& place,
                        const RentedJob& job, const std::string& path) {
  const project::Project project{.root = job.root, .name = job.tree, .folder = {}};
  project::SyncOptions how;
  how.remark = [&](const std::string& text) {
    tell_line(program, fmt::format("{}; {} keeps its copy in {}", text, job.host, job.tree));
  };
  LOCKSTEP_TRY_ASSIGN(const auto host, project::sync_back(place, project, path, how));
  if (host.code == 0 && host.files > 0)
    tell_line(program, fmt::format("{}: {} files, {} brought from {}", path, host.files,
                                   project::size_text(host.bytes), job.host));
  if (host.code == 0) return true;
  if (host.code != 1) return fail(Errc::unavailable, host.error, host.hint);
  tell_line(program, fmt::format("{}: {}; {} keeps what it has in {}", path, host.error, job.host,
                                 job.tree));
  return false;
}

// The same as settle_owned(). This process has the claim, or no other command can be at it.
Result<std::optional<int>> settle_claimed(cloud::Journal& journal, std::string_view program,
                                          const RentedJob& job, Telling telling) {
  LOCKSTEP_TRY_ASSIGN(const bool kept, journal.has_job(job.rental));
  if (!kept) return std::optional<int>();
  LOCKSTEP_TRY_ASSIGN(const OwnedState there, state_of_owned(job));
  const OwnedStep step = jobs::rented::next_step(job, there, unix_ms());
  if (step == OwnedStep::wait) return std::optional<int>();
  bool all = true;
  if (step != OwnedStep::forget) {
    LOCKSTEP_TRY_ASSIGN(all, bring_from_owner(program, job));
  }
  LOCKSTEP_TRY(journal.drop_job(job.rental));
  if (step != OwnedStep::settle) {
    tell_line(
        program,
        fmt::format("{} has no job on '{}' any more: it never began there, or was ended there",
                    job.host, job.cluster));
    return std::optional<int>(number(ExitCode::failed));
  }
  const int code = jobs::rented::settled_code(there, all);
  // Without this word the host keeps its record for 30 days, and nothing else.
  (void)ask_owner(job.host, {"told", job.rental});
  if (telling == Telling::full)
    tell_line(program, fmt::format("'{}' has ended at {}: exit code {}, {}", job.cluster, job.host,
                                   code, there.note));
  return std::optional<int>(code);
}

// Waits until the other command here that sees to the job's end is done or gone. canceled: a signal
// came.
Result<io::Fd> await_claim(const std::string& rental) {
  const sigset_t set = proc::handled_signals();
  while (true) {
    auto mine = rent::claim_job(rental);
    if (mine || mine.error().code != Errc::already_exists) return mine;
    const timespec pause{0, kClaimPauseNs};
    if (const int signal = sigtimedwait(&set, nullptr, &pause); proc::is_stop_signal(signal))
      return Failure(Error{Errc::canceled, "stopped by the user", {}, signal});
  }
}

// Writes down the id by which commands here may name the job from now on.
void note_start(cloud::Journal& journal, RentedJob job) {
  const auto state = state_of_owned(job);
  if (!state || state->job.empty()) return;
  job.job = state->job;
  (void)journal.note_job(job);
}

}  // namespace

std::string error_line(const Error& error) {
  return error.hint.empty() ? error.message : error.message + "; " + error.hint;
}

Result<std::vector<RentedJob>> owned_jobs() {
  if (access(cloud::Journal::path_in(io::state_folder()).c_str(), F_OK) != 0)
    return std::vector<RentedJob>();
  LOCKSTEP_TRY_ASSIGN(auto journal, cloud::Journal::open(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(auto jobs, journal.jobs());
  std::erase_if(jobs, [](const RentedJob& job) { return job.host.empty(); });
  return jobs;
}

Result<std::optional<RentedJob>> find_owned(const std::string& word) {
  LOCKSTEP_TRY_ASSIGN(auto jobs, owned_jobs());
  for (RentedJob& job : jobs)
    if (job.cluster == word || (!job.job.empty() && job.job == word))
      return std::optional(std::move(job));
  return std::optional<RentedJob>();
}

Status refuse_owned(const std::string& word, std::string_view what, std::string_view command) {
  LOCKSTEP_TRY_ASSIGN(const auto owned, find_owned(word));
  if (!owned) return {};
  const std::string host = printable(owned->host);
  return fail(Errc::invalid_input,
              fmt::format("only {}, which rents the machines of {}, reaches {}", host,
                          printable(word), what),
              fmt::format("on {}: lockstep {} {}", host, command, printable(word)));
}

Status check_not_owned_elsewhere(cloud::Journal& journal, const std::string& cluster) {
  LOCKSTEP_TRY_ASSIGN(const auto jobs, journal.jobs());
  for (const RentedJob& job : jobs)
    if (job.cluster == cluster && !job.host.empty())
      return fail(
          Errc::unavailable, fmt::format("'{}' is the name of a job at {}", cluster, job.host),
          fmt::format("wait for it, give another name, or end it: lockstep down {}", cluster));
  return {};
}

Result<std::string> ask_owner(const std::string& host, const Args& argv, const std::string& input,
                              Asked* asked) {
  using Request = hosts::CommandRequest;
  Asked ignored{};
  Asked& how_far = asked == nullptr ? ignored : *asked;
  how_far = Asked::never;
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place, rent::GuardHosts::place_of(host));
  LOCKSTEP_TRY_ASSIGN(
      hosts::HostEnding ending,
      ending_of(
          hosts::run_command({.hosts = {place},
                              .argv = words_of(argv),
                              .own_binary = true,
                              .input = input.empty() ? Request::Input::none : Request::Input::given,
                              .given = {input},
                              .output = Request::Output::keep,
                              .most_kept = kMostAnswer,
                              .limit = argv.front() == "state" ? kStatePatience : kAskPatience,
                              .may_outlive = true}),
          how_far));
  if (ending.code != 0)
    return Failure(
        jobs::rented::error_of_ask(host, ending.code, ending.err, proc::SignalWatch::take_stop()));
  std::fputs(jobs::rented::printable_lines(ending.err).c_str(), stderr);
  return std::move(ending.out);
}

Result<OwnedState> state_of_owned(const RentedJob& job) {
  LOCKSTEP_TRY_ASSIGN(const std::string said, ask_owner(job.host, {"state", job.rental}));
  return jobs::rented::read_owned_state(said);
}

Result<ExitCode> run_at_owner_of(const RentedJob& job, const Args& command, Output output) {
  using Request = hosts::CommandRequest;
  Args argv = {"ask", job.rental, job.cluster};
  argv.insert(argv.end(), command.begin(), command.end());
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place, rent::GuardHosts::place_of(job.host));
  Request request{.hosts = {place},
                  .argv = words_of(argv),
                  .own_binary = true,
                  .input = Request::Input::none,
                  .labels = Request::Labels::never,
                  // The command may start the guard there.
                  .may_outlive = true};
  jobs::rented::OwnerWords errors;
  if (output == Output::words) {
    request.output = Request::Output::keep;
    request.most_kept = kMostAnswer;
    request.limit = kAskPatience;
    request.on_errors = [&](std::size_t, std::string_view bytes) {
      end_line();
      std::fputs(errors.take(bytes).c_str(), stderr);
    };
  }
  Asked asked{};
  const auto ending = ending_of(hosts::run_command(request), asked);
  std::fputs(errors.end().c_str(), stderr);
  if (!ending) return Failure(ending.error());
  std::fputs(jobs::rented::printable_lines(ending->out).c_str(), stdout);
  return passed_on(ending->code);
}

Result<std::optional<ExitCode>> pass_to_owner(const Call& call, const Args& path, Output output) {
  if (call.parsed.names.empty()) return std::optional<ExitCode>();
  LOCKSTEP_TRY_ASSIGN(const auto job, find_owned(call.parsed.names.front()));
  if (!job) return std::optional<ExitCode>();
  Args command = path;
  command.insert(command.end(), call.words.begin(), call.words.end());
  LOCKSTEP_TRY_ASSIGN(const ExitCode code, run_at_owner_of(*job, command, output));
  return std::optional(code);
}

Result<bool> bring_from_owner(std::string_view program, const RentedJob& job) {
  bool all = true;
  if (job.root.empty() || job.back.empty()) return all;
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place, rent::GuardHosts::place_of(job.host));
  for (const std::string& path : job.back) {
    LOCKSTEP_TRY_ASSIGN(const bool came, bring_path(program, place, job, path));
    all = all && came;
  }
  return all;
}

Result<std::optional<int>> settle_owned(cloud::Journal& journal, std::string_view program,
                                        const RentedJob& job, Telling telling) {
  const auto mine = rent::claim_job(job.rental);
  if (!mine && mine.error().code == Errc::already_exists) return std::optional<int>();
  if (!mine) return Failure(mine.error());
  return settle_claimed(journal, program, job, telling);
}

Result<ExitCode> view_owned(cloud::Journal& journal, std::string_view program, const RentedJob& job,
                            const OwnedView& view, bool settles) {
  using Core = jobs::rented::OwnedViewCore;
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place, rent::GuardHosts::place_of(job.host));
  LOCKSTEP_TRY_ASSIGN(
      const auto end,
      jobs::rented::view_at_owner(
          {.place = place,
           .rental = job.rental,
           .how = view.how,
           .settings = {.cluster = job.cluster,
                        .host = job.host,
                        .on_stop = view.leaves ? Core::OnStop::leave : Core::OnStop::cancel,
                        .canceled = view.cancels,
                        .met = view.met},
           .say = [&](const std::string& text) { tell_line(program, text); }}));
  if (end.signal != 0) {
    tell_line(program, going_on_words(job));
    return stopped_by(end.signal);
  }
  if (!end.code) return fail(Errc::unavailable, end.lost, going_on_words(job));
  const ExitCode code = passed_on(*end.code);
  // The outputs are here once the job is settled.
  io::Fd mine;
  if (!settles) {
    LOCKSTEP_TRY_ASSIGN(mine, await_claim(job.rental));
  }
  if (!journal.has_job(job.rental).value_or(true)) return code;
  const auto settled = settle_claimed(journal, program, job, Telling::brief);
  if (settled && *settled)
    return passed_on(jobs::rented::code_for_user(**settled, end.canceled_by));
  if (!settled) print_error(program, settled.error());
  const bool started = view.how.starts_with("start");
  if (started && code == ExitCode::ok) note_start(journal, job);
  tell_line(program, going_on_words(job));
  // Only the job's own record says that the job has succeeded.
  return code == ExitCode::ok && !started ? ExitCode::not_reached : code;
}

Result<ExitCode> view_owned(std::string_view program, const RentedJob& job, const OwnedView& view) {
  LOCKSTEP_TRY_ASSIGN(auto journal, cloud::Journal::open(io::state_folder()));
  const auto mine = rent::claim_job(job.rental);
  if (!mine && mine.error().code != Errc::already_exists) return Failure(mine.error());
  return view_owned(journal, program, job, view, mine.has_value());
}

}  // namespace lockstep::cli
