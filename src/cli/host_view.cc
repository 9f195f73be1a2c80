#include "cli/host_view.h"

#include "cli/rented_view.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "jobs/rented/course_log.h"
#include "jobs/rented/view_core.h"
#include "proc/signals.h"
#include "rent/job_claim.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

namespace lockstep::cli {
namespace {

using cloud::RentedJob;
using jobs::rented::CourseLogReader;
using jobs::rented::ViewStep;

constexpr long kLookNs = 50'000'000;
// The guard starts another process for the course within this time, unless it fails to.
constexpr std::chrono::seconds kAlone{60};

// Waits until the next look. Returns the signal that came meanwhile; 0: none.
int wait_for_signal() {
  const sigset_t set = proc::handled_signals();
  const timespec look{0, kLookNs};
  return std::max(sigtimedwait(&set, nullptr, &look), 0);
}

class HostView {
 public:
  HostView(cloud::Journal journal, const RentedJob& job, const std::string& how);
  Result<ExitCode> run();

 private:
  Result<std::optional<RentedJob>> record();
  void show_output();
  std::optional<ExitCode> carry_out(ViewStep step, const std::optional<RentedJob>& job);
  void cancel(const RentedJob& job);
  bool is_ready(const std::optional<RentedJob>& job) const;
  bool is_alone(bool claimed);

  cloud::Journal journal_;
  std::string rental_;
  bool silent_;
  bool json_;
  bool until_start_;
  CourseLogReader log_;
  jobs::rented::ViewCore core_;
  std::optional<std::chrono::steady_clock::time_point> alone_since_;
};

HostView::HostView(cloud::Journal journal, const RentedJob& job, const std::string& how)
    : journal_(std::move(journal)),
      rental_(job.rental),
      silent_(how == "quiet" || how == "cancel"),
      json_(how == "start-json"),
      until_start_(how == "start" || json_),
      log_(job.cluster, CourseLogReader::From::beginning),
      core_(until_start_) {
  if (how == "cancel") (void)core_.on_signal(SIGINT, job);
}

Result<std::optional<RentedJob>> HostView::record() {
  LOCKSTEP_TRY_ASSIGN(auto jobs, journal_.jobs());
  for (RentedJob& job : jobs)
    if (job.rental == rental_) return std::optional(std::move(job));
  return std::optional<RentedJob>();
}

void HostView::show_output() {
  if (silent_) return;
  const auto put = [this](link::Stream stream, std::string_view bytes) {
    // Only the job's id goes to stdout of a command with --detach.
    if (until_start_ && stream == link::Stream::out) return;
    std::FILE* const to = stream == link::Stream::out ? stdout : stderr;
    std::fwrite(bytes.data(), 1, bytes.size(), to);
    // Flush each run of bytes: the order of the two streams is kept that way.
    std::fflush(to);
  };
  while (log_.read(put)) {
  }
}

// Returns whether the course handles signals, which it says by its pid in the journal.
bool HostView::is_ready(const std::optional<RentedJob>& job) const {
  return job && job->follower != 0 && rent::job_is_claimed(rental_);
}

// Returns whether no process has followed the job for a while.
bool HostView::is_alone(bool claimed) {
  const auto now = std::chrono::steady_clock::now();
  if (claimed) alone_since_.reset();
  if (!claimed && !alone_since_) alone_since_ = now;
  return !claimed && now - *alone_since_ >= kAlone;
}

void HostView::cancel(const RentedJob& job) {
  const io::Fd course(static_cast<int>(syscall(SYS_pidfd_open, job.follower, 0)));
  // The pid may have another owner by now, unless the journal still names it after the open.
  const auto now = record().value_or(std::nullopt);
  if (course && is_ready(now) && now->follower == job.follower)
    (void)syscall(SYS_pidfd_send_signal, course.get(), SIGINT, nullptr, 0);
}

// Returns the exit code if the view ends.
std::optional<ExitCode> HostView::carry_out(ViewStep step, const std::optional<RentedJob>& job) {
  if (step == ViewStep::cancel) cancel(*job);
  if (step != ViewStep::leave) return std::nullopt;
  const auto known = until_start_ ? started_job(job) : std::nullopt;
  if (known) std::puts(start_text(*job, *known, json_).c_str());
  return passed_on(core_.code());
}

Result<ExitCode> HostView::run() {
  while (true) {
    // Read the record first: the course writes its last line before it gives up the claim.
    LOCKSTEP_TRY_ASSIGN(const auto job, record());
    const bool claimed = rent::job_is_claimed(rental_);
    const bool over = (!job || job->stage == RentedJob::Stage::ended) && !claimed;
    show_output();
    if (over && job) return passed_on(job->code);
    if (over) return fail(Errc::unavailable, "the job was ended by lockstep down");
    if (is_alone(claimed))
      return fail(Errc::unavailable,
                  "no process follows the job there now: see guard.log in " + io::state_folder());
    const ViewStep seen = core_.is_waiting()
                              ? core_.on_look(is_ready(job), until_start_ && started_job(job))
                              : ViewStep::go_on;
    if (const auto code = carry_out(seen, job)) return *code;
    const int signal = wait_for_signal();
    if (proc::is_stop_signal(signal) && signal != SIGINT) return stopped_by(signal);
    if (signal != SIGINT) continue;
    if (const auto code = carry_out(core_.on_signal(signal, job), job)) return *code;
  }
}

}  // namespace

Result<ExitCode> show_to_client(cloud::Journal journal, const RentedJob& job,
                                const std::string& how) {
  return HostView(std::move(journal), job, how).run();
}

}  // namespace lockstep::cli
