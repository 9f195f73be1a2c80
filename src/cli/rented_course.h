// Drives the course of a job on rented machines, which jobs/rented/course.h decides: rents, runs
// the job, brings its outputs back, and terminates the machines. Runs in a background process
// (follow_rented.cc). The journal has at each step what another process needs to continue.
#pragma once

#include "cli/on_demand_options.h"
#include "cli/remote_run.h"
#include "cli/rented_loss.h"
#include "jobs/rented/course.h"
#include "proc/signal_watch.h"
#include "rent/on_demand.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

inline constexpr std::string_view kRentedRun = "lockstep run --on-demand";

jobs::rented::CourseRecord record_of(const cloud::RentedJob& job);

// A job on rented machines, through all of its attempts, from where its record stands. References
// must outlive the object.
class RentedCourse {
 public:
  RentedCourse(const Call& call, const RemoteOptions& remote, const OnDemandOptions& options,
               rent::OnDemand& world, cloud::Rental rental, cloud::RentedJob job)
      : call_(call),
        remote_(remote),
        options_(options),
        world_(world),
        rental_(std::move(rental)),
        job_(std::move(job)),
        course_(record_of(job_), {.brings_back = !options.back.empty()}) {
    remote_.on = rental_.cluster;
    remote_.place.nodes.reset();
    remote_.run_id = job_.run_id;
    remote_.is_course = true;
    remote_.hosts_gone = [this] { return machines_gone(rental_); };
    remote_.on_job = [this](const std::string& id) {
      job_.job = id;
      return world_.journal().note_job(job_);
    };
    // The command shows these jobs to the user who detaches. Without the note they are not shown.
    remote_.on_started = [this](const std::vector<std::string>& ahead) {
      job_.ahead = ahead;
      (void)world_.journal().note_job(job_);
    };
  }

  // Returns the exit code.
  int run();

 private:
  jobs::rented::Seen carry_out(jobs::rented::Step step);
  jobs::rented::Seen seen(const Status& done);
  jobs::rented::Seen run_job();
  jobs::rented::Seen save();
  jobs::rented::Seen bring();
  jobs::rented::Seen hold();
  jobs::rented::Seen terminate();
  void note_signal(int signal);
  void look_for_signals();
  bool is_wanted();
  bool was_taken();
  Status note(cloud::RentedJob::Stage stage);
  Status take_lock();
  Result<std::vector<hosts::HostPlace>> own_places() const;
  Status bring_back();
  Status take_along();
  Status end_lost();
  Status machines_again();
  Status may_begin() const;
  Result<RemoteOutcome> attempt();
  bool first_runs();
  Status hold_machines(const std::string& why);
  void conclude(int code);
  void tell(const std::string& text) const;

  const Call& call_;
  RemoteOptions remote_;
  const OnDemandOptions& options_;
  rent::OnDemand& world_;
  cloud::Rental rental_;
  cloud::RentedJob job_;
  jobs::rented::Course course_;
  bool asked_to_end_ = false;    // SIGINT: the user canceled the job
  bool asked_to_leave_ = false;  // SIGTERM and the like: this process is to end
  RemoteOutcome ended_;          // result of the newest attempt
  std::string missing_;          // why the outputs are not here
};

}  // namespace lockstep::cli
