#include "cli/owner_host.h"

#include "base/clock_ms.h"
#include "base/text.h"
#include "cli/on_demand.h"
#include "hosts/command_run.h"
#include "io/own_folders.h"
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
using jobs::rented::OwnedState;

// A plan asks all providers, and the binary may have to be copied first.
constexpr std::chrono::seconds kAskPatience{600};
// Commands about other jobs ask for the state, too: a host that hangs must not hold them for long.
constexpr std::chrono::seconds kStatePatience{60};
constexpr std::int64_t kStartMs = 15LL * 60'000;
constexpr std::size_t kMostLine = 1000;
constexpr long kClaimPauseNs = 100'000'000;
constexpr std::string_view kErrorMark = "error: ";

Args words_of(const Args& argv) {
  Args words = {jobs::rented::kHostRental};
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

// Returns the error of a command on the host. `sys` is the signal that ended the command there. Its
// last line is that of print_error(), whose name of the command means nothing to this user.
Error error_there(const std::string& host, const hosts::HostEnding& ending) {
  std::string line(strip(ending.err));
  line.erase(0, line.rfind('\n') + 1);
  if (const auto mark = line.find(kErrorMark); mark != std::string::npos)
    line.erase(0, mark + kErrorMark.size());
  // A command that a signal has ended may have done what it was asked to do.
  const Errc code = ending.code == number(ExitCode::usage) ? Errc::invalid_input
                    : ending.code > 128                    ? Errc::unavailable
                                                           : Errc::denied;
  return {
      .code = code,
      .message = fmt::format("{}: {}", host, line.empty() ? "no answer" : printable(line, 1000)),
      .hint = {},
      .sys = std::max(ending.code - 128, 0)};
}

std::string going_on_words(const RentedJob& job) {
  return fmt::format(
      "'{0}' goes on at {1}; lockstep logs -f {0} shows it, lockstep down {0} ends it", job.cluster,
      job.host);
}

// Returns the ending of the command on the host, or why it did not run there.
Result<hosts::HostEnding> ending_of(const Result<std::vector<hosts::HostEnding>>& endings) {
  if (!endings) return Failure(endings.error());
  const hosts::HostEnding& ending = endings->front();
  if (ending.error.empty()) return ending;
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
  // A start whose answer was lost may be under way there.
  const bool may_begin =
      job.stage == RentedJob::Stage::renting && unix_ms() - job.began_ms < kStartMs;
  if (there.known ? !there.ended : may_begin) return std::optional<int>();
  if (!there.known) {
    // `lockstep down` may have ended it there and lost the connection: the files are there still.
    if (job.stage == RentedJob::Stage::working) LOCKSTEP_TRY(bring_from_owner(program, job));
    tell_line(
        program,
        fmt::format("{} has no job on '{}' any more: it never began there, or was ended there",
                    job.host, job.cluster));
    LOCKSTEP_TRY(journal.drop_job(job.rental));
    return std::optional<int>(number(ExitCode::failed));
  }
  LOCKSTEP_TRY_ASSIGN(const bool all, bring_from_owner(program, job));
  const int code = there.code == 0 && !all ? number(ExitCode::failed) : there.code;
  LOCKSTEP_TRY(journal.drop_job(job.rental));
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

std::string printable_lines(std::string_view text) {
  std::string shown;
  for (const std::string& line : split(strip(text), '\n'))
    if (!line.empty()) shown += printable(line, kMostLine) + "\n";
  return shown;
}

Result<std::optional<RentedJob>> find_owned(const std::string& word) {
  LOCKSTEP_TRY_ASSIGN(auto jobs, owned_jobs());
  for (RentedJob& job : jobs)
    if (job.cluster == word || (!job.job.empty() && job.job == word))
      return std::optional(std::move(job));
  return std::optional<RentedJob>();
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

Result<std::string> ask_owner(const std::string& host, const Args& argv, const std::string& input) {
  using Request = hosts::CommandRequest;
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place, rent::GuardHosts::place_of(host));
  LOCKSTEP_TRY_ASSIGN(hosts::HostEnding ending,
                      ending_of(hosts::run_command(
                          {.hosts = {place},
                           .argv = words_of(argv),
                           .own_binary = true,
                           .input = input.empty() ? Request::Input::none : Request::Input::given,
                           .given = {input},
                           .output = Request::Output::keep,
                           .limit = argv.front() == "state" ? kStatePatience : kAskPatience,
                           .may_outlive = true})));
  if (ending.code != 0) return Failure(error_there(host, ending));
  std::fputs(printable_lines(ending.err).c_str(), stderr);
  return std::move(ending.out);
}

Result<OwnedState> state_of_owned(const RentedJob& job) {
  LOCKSTEP_TRY_ASSIGN(const std::string said, ask_owner(job.host, {"state", job.rental}));
  return jobs::rented::read_owned_state(said);
}

Result<ExitCode> run_at_owner_of(const RentedJob& job, const Args& command) {
  Args argv = {"ask", job.rental, job.cluster};
  argv.insert(argv.end(), command.begin(), command.end());
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place, rent::GuardHosts::place_of(job.host));
  // The command may start the guard there.
  LOCKSTEP_TRY_ASSIGN(const auto ending,
                      ending_of(hosts::run_command({.hosts = {place},
                                                    .argv = words_of(argv),
                                                    .own_binary = true,
                                                    .input = hosts::CommandRequest::Input::none,
                                                    .labels = hosts::CommandRequest::Labels::never,
                                                    .may_outlive = true})));
  return passed_on(ending.code);
}

Result<std::optional<ExitCode>> pass_to_owner(const Call& call, const Args& path) {
  if (call.parsed.names.empty()) return std::optional<ExitCode>();
  LOCKSTEP_TRY_ASSIGN(const auto job, find_owned(call.parsed.names.front()));
  if (!job) return std::optional<ExitCode>();
  Args command = path;
  command.insert(command.end(), call.words.begin(), call.words.end());
  LOCKSTEP_TRY_ASSIGN(const ExitCode code, run_at_owner_of(*job, command));
  return std::optional(code);
}

bool is_cancel(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGQUIT;
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
                            const std::string& how, bool settles) {
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place, rent::GuardHosts::place_of(job.host));
  const auto ending =
      ending_of(hosts::run_command({.hosts = {place},
                                    .argv = words_of({"follow", job.rental, how}),
                                    .own_binary = true,
                                    .input = hosts::CommandRequest::Input::none,
                                    .labels = hosts::CommandRequest::Labels::never}));
  const bool canceled = !ending && ending.error().code == Errc::canceled;
  const int signal = canceled ? ending.error().sys : proc::SignalWatch::take_stop();
  // The view there has not begun, or was ended by the signal. SIGINT does not end a view.
  const bool unseen =
      canceled || (ending && signal != SIGINT && passed_on(ending->code) == stopped_by(signal));
  if (unseen && is_cancel(signal) && how != "cancel") {
    tell_line(program, fmt::format("'{}' is being canceled", job.cluster));
    return view_owned(journal, program, job, "cancel", settles);
  }
  if (!ending) {
    Error error = ending.error();
    error.hint = going_on_words(job);
    return Failure(std::move(error));
  }
  const ExitCode code = passed_on(ending->code);
  // The outputs are here once the job is settled.
  io::Fd mine;
  if (!settles) {
    if (signal != 0 && code == stopped_by(signal)) return code;
    LOCKSTEP_TRY_ASSIGN(mine, await_claim(job.rental));
  }
  if (!journal.has_job(job.rental).value_or(true)) return code;
  const auto settled = settle_claimed(journal, program, job, Telling::brief);
  if (settled && *settled) return passed_on(**settled);
  if (!settled) print_error(program, settled.error());
  const bool started = how.starts_with("start");
  if (started && code == ExitCode::ok) note_start(journal, job);
  tell_line(program, going_on_words(job));
  // Only the job's own record says that the job has succeeded.
  return code == ExitCode::ok && !started ? ExitCode::not_reached : code;
}

Result<ExitCode> view_owned(std::string_view program, const RentedJob& job,
                            const std::string& how) {
  LOCKSTEP_TRY_ASSIGN(auto journal, cloud::Journal::open(io::state_folder()));
  const auto mine = rent::claim_job(job.rental);
  if (!mine && mine.error().code != Errc::already_exists) return Failure(mine.error());
  return view_owned(journal, program, job, how, mine.has_value());
}

}  // namespace lockstep::cli
