#include "cli/host_view.h"

#include "cli/rented_view.h"
#include "io/own_folders.h"
#include "jobs/rented/client_log.h"
#include "jobs/rented/client_state.h"
#include "jobs/rented/course_log.h"
#include "jobs/rented/course_process.h"
#include "jobs/rented/owner_rules.h"
#include "jobs/rented/owner_talk.h"
#include "jobs/rented/stream_text.h"
#include "jobs/rented/view_core.h"
#include "proc/signals.h"
#include "rent/job_claim.h"

#include <signal.h>
#include <time.h>

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

// Waits until the next look. Returns the signal that came meanwhile; 0: none.
int wait_for_signal() {
  const sigset_t set = proc::handled_signals();
  const timespec look{0, kLookNs};
  return std::max(sigtimedwait(&set, nullptr, &look), 0);
}

void send_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// Ends this process by the signal. An exit code would look like that of the job.
void end_by(int number) {
  (void)signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  (void)raise(number);
  (void)sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

class HostView {
 public:
  HostView(cloud::Journal journal, const RentedJob& job, const ClientView& view);
  Result<ExitCode> run();

 private:
  void show_output();
  std::optional<ExitCode> carry_out(ViewStep step, const std::optional<RentedJob>& job);
  bool is_ready(const std::optional<RentedJob>& job) const;

  cloud::Journal journal_;
  std::string rental_;
  bool silent_;
  bool json_;
  bool until_start_;
  CourseLogReader log_;
  jobs::rented::ClientLog client_;
  jobs::rented::ViewCore core_;
  jobs::rented::Unfollowed unfollowed_;
};

HostView::HostView(cloud::Journal journal, const RentedJob& job, const ClientView& view)
    : journal_(std::move(journal)),
      rental_(job.rental),
      silent_(view.how == jobs::rented::kFollowQuiet),
      json_(view.how == "start-json"),
      until_start_(view.how == "start" || json_),
      log_(job.cluster, CourseLogReader::From::beginning),
      client_(view.shown),
      core_(until_start_ && !view.to_end) {
  if (view.canceled) (void)core_.on_signal(SIGINT, job);
}

void HostView::show_output() {
  if (silent_) return;
  while (log_.read([this](link::Stream stream, std::string_view bytes) {
    // Only the job's id goes to stdout of a command with --detach.
    if (until_start_ && stream == link::Stream::out) return;
    const std::string text = client_.encode(log_.at(), stream, bytes);
    if (client_.take_gap() && !until_start_)
      std::fputs("some output is missing here: a long log keeps only its beginning and its end\n",
                 stderr);
    send_text(text);
  })) {
  }
}

// Returns whether the course handles signals, which it says by its pid in the journal.
bool HostView::is_ready(const std::optional<RentedJob>& job) const {
  return job && job->follower != 0 && rent::job_is_claimed(rental_);
}

// Returns the exit code if the view ends.
std::optional<ExitCode> HostView::carry_out(ViewStep step, const std::optional<RentedJob>& job) {
  if (step == ViewStep::cancel && jobs::rented::interrupt_course(journal_, rental_))
    send_text(jobs::rented::StreamEncoder::canceled());
  if (step != ViewStep::leave) return std::nullopt;
  const auto known = until_start_ ? jobs::rented::started_job(job) : std::nullopt;
  if (known) send_text(client_.add(link::Stream::out, start_text(*job, *known, json_) + "\n"));
  return passed_on(core_.code());
}

Result<ExitCode> HostView::run() {
  while (true) {
    // Read the record first: the course writes its last line before it gives up the claim.
    LOCKSTEP_TRY_ASSIGN(const auto job, jobs::rented::job_of_rental(journal_, rental_));
    const bool claimed = rent::job_is_claimed(rental_);
    const bool over = (!job || job->stage == RentedJob::Stage::ended) && !claimed;
    show_output();
    if (over && job) return passed_on(job->code);
    if (over) return fail(Errc::unavailable, "the job was ended by lockstep down");
    if (unfollowed_.look(claimed, std::chrono::steady_clock::now()))
      return fail(Errc::unavailable,
                  "no process follows the job there now: see guard.log in " + io::state_folder());
    const ViewStep seen =
        core_.is_waiting()
            ? core_.on_look(is_ready(job), until_start_ && jobs::rented::started_job(job))
            : ViewStep::go_on;
    if (const auto code = carry_out(seen, job)) return *code;
    const int signal = wait_for_signal();
    if (proc::is_stop_signal(signal) && signal != SIGINT) end_by(signal);
    if (signal != SIGINT) continue;
    if (const auto code = carry_out(core_.on_signal(signal, job), job)) return *code;
  }
}

}  // namespace

Result<ExitCode> show_to_client(cloud::Journal journal, const RentedJob& job,
                                const ClientView& view) {
  return HostView(std::move(journal), job, view).run();
}

}  // namespace lockstep::cli
