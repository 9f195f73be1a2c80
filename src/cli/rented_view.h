// The terminal of `lockstep run --on-demand`: shows what the course of the job does in its own
// process. Carries out the decisions of jobs/rented/view_core.h.
#pragma once

#include "cli/transfer_bar.h"
#include "hosts/host_output.h"
#include "io/fd.h"
#include "io/loop.h"
#include "jobs/job_book.h"
#include "jobs/rented/course_log.h"
#include "jobs/rented/view_core.h"
#include "proc/signal_watch.h"
#include "rent/job_claim.h"
#include "rent/on_demand.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cli {

// Returns what --detach prints of a job that has started.
std::string start_text(const cloud::RentedJob& job, const jobs::KnownJob& known, bool json);

struct ViewRequest {
  std::string_view program;  // for messages
  cloud::Rental rental;
  bool detach = false;  // show the start only
  bool json = false;    // with `detach`: print the start as JSON
};

// Views one job to its end. Make the object before the course may print: the view begins at the
// present end of the log. References must outlive the object.
class RentedView {
 public:
  // claim: the command's claim to the job. course: the process, which waits for the command.
  RentedView(rent::OnDemand& world, ViewRequest request, rent::CourseProcess course, io::Fd claim);

  // Hands the job over to the course, and shows it until its end. Returns the exit code. The job
  // goes on if a signal ends the view: SIGHUP, or the third SIGINT or SIGTERM.
  Result<int> run();

 private:
  void carry_out(jobs::rented::ViewStep step);
  void start_course();
  void watch_course();
  void on_course_end();
  void cancel() const;
  void look();
  void show_output();
  void show_progress();
  bool is_ready(const std::optional<cloud::RentedJob>& job) const;
  void note_start();
  void leave();
  void finish();
  void stop();
  void say(const std::string& text);
  std::string going_on_words() const;
  Result<std::optional<cloud::RentedJob>> record() const;

  rent::OnDemand& world_;
  ViewRequest request_;
  rent::CourseProcess course_;
  io::Fd claim_;
  jobs::rented::CourseLogReader log_;
  io::Loop loop_;
  std::optional<hosts::HostOutput> out_;
  std::optional<hosts::HostOutput> err_;
  std::size_t unprinted_ = 0;  // bytes taken from the log and not printed yet
  TransferBar bar_{true};
  std::unique_ptr<proc::SignalWatch> signals_;
  std::optional<io::Watch> ended_;  // the course's process
  io::Fd changes_;                  // inotify, on the folder of the log
  std::optional<io::Watch> changed_;
  io::Timer next_look_;
  io::Timer next_start_;
  jobs::rented::ViewCore core_;
  io::TimePoint started_;   // the present process of the course
  std::string start_text_;  // of a detached job
  bool over_ = false;
};

}  // namespace lockstep::cli
