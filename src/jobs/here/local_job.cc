#include "jobs/here/local_job.h"

#include "base/text.h"
#include "io/fd.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace lockstep::jobs::here {
namespace {

constexpr std::string_view kHead = "pid-";
constexpr const char* kPlace = "this machine";
constexpr int kLookMs = 100;
// Both times are counted from now, so a clock that is set moves them apart.
constexpr std::int64_t kClockStepMs = 5'000;

Error gone(const KnownJob& job) {
  return {
      .code = Errc::not_found,
      .message = fmt::format("{} no longer runs", job.id),
      .hint = "a run on this machine leaves no record; --report FILE writes a report at the end"};
}

// A pidfd refers to the process itself. Its number may belong to another process by the next call.
Result<io::Fd> open_process(pid_t pid) {
  io::Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return fail_sys("open process " + std::to_string(pid), errno);
  return process;
}

// Returns the signal that stopped the waiting; 0: the process has ended.
int await_end(const io::Fd& process) {
  pollfd end{.fd = process.get(), .events = POLLIN, .revents = 0};
  while (poll(&end, 1, kLookMs) <= 0)
    if (const int number = proc::take_stop_signal({}); number != 0) return number;
  return 0;
}

}  // namespace

std::string local_id(pid_t pid) {
  return std::string(kHead) + std::to_string(pid);
}

KnownJob known_job(const LocalRun& run) {
  return {.id = local_id(run.pid),
          .name = "-",
          .place = kPlace,
          .command = run.command,
          .created_ms = run.started_ms};
}

bool is_local_job(const KnownJob& job) {
  return job.place == kPlace && job.id.starts_with(kHead);
}

std::optional<KnownJob> find_local_job(std::string_view word) {
  if (!word.starts_with(kHead)) return std::nullopt;
  const auto pid = parse_int(word.substr(kHead.size()));
  if (!pid || *pid <= 0) return std::nullopt;
  const auto run = find_run(static_cast<pid_t>(*pid));
  return run ? std::optional(known_job(*run)) : std::nullopt;
}

pid_t LocalJob::pid() const {
  return static_cast<pid_t>(parse_int(record_.id.substr(kHead.size())).value_or(0));
}

bool LocalJob::runs() const {
  const auto run = find_run(pid());
  // The start time tells the run from a later process with the same number.
  return run && std::abs(run->started_ms - record_.created_ms) < kClockStepMs;
}

Result<JobStatus> LocalJob::status() {
  return JobStatus{.state = runs() ? JobState::running : JobState::lost};
}

Result<Explanation> LocalJob::why() {
  LOCKSTEP_TRY_ASSIGN(const JobStatus now, status());
  // The output of such a run goes to its own terminal.
  return explain_job(record_, now, nullptr,
                     now.is_over() ? "the run has ended, and left no record"
                                   : fmt::format("lockstep wait {} waits for the end", record_.id));
}

Result<Followed> LocalJob::follow(const FollowOptions& options) {
  if (options.print)
    return fail(
        Errc::invalid_input,
        fmt::format("the output of {} goes to the terminal where the run was started", record_.id),
        "lockstep run --log-dir DIR keeps the output in files");
  Followed followed;
  if (auto process = open_process(pid()); process && runs()) followed.signal = await_end(*process);
  followed.left = followed.signal != 0;
  return followed;
}

Result<JobStatus> LocalJob::cancel() {
  // Open the process before the check: the signal cannot reach another process then.
  LOCKSTEP_TRY_ASSIGN(const io::Fd process, open_process(pid()));
  if (!runs()) return Failure(gone(record_));
  if (syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0) != 0)
    return fail_sys("end process " + std::to_string(pid()), errno);
  if (const int number = await_end(process); number != 0)
    return Failure({Errc::canceled, "the end of the run was not awaited", {}, number});
  return JobStatus{.state = JobState::canceled, .canceled = true, .by_person = true};
}

Result<Resumed> LocalJob::resume(const std::vector<std::string>& env) {
  (void)env;
  return fail(Errc::invalid_input, record_.id + " runs on this machine and has no parts to resume",
              "start the job again with lockstep run");
}

}  // namespace lockstep::jobs::here
