// The course of a job on rented machines, from wherever it stands: runs it, brings its outputs
// back, goes on elsewhere when spot machines are taken, and gives the machines back. What somebody
// else needs to go on is in the journal at each step.
#pragma once

#include "cli/on_demand_options.h"
#include "cli/remote_run.h"
#include "cli/rented_loss.h"
#include "cli/watched_job.h"
#include "rent/on_demand.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

inline constexpr std::string_view kRentedRun = "lockstep run --on-demand";

// One job on rented machines, over all of its attempts, from where it stands.
class RentedCourse {
 public:
  RentedCourse(const Call& call, const RemoteOptions& remote, const OnDemandOptions& options,
               rent::OnDemand& world, cloud::Rental rental, cloud::RentedJob job)
      : call_(call),
        remote_(remote),
        options_(options),
        world_(world),
        rental_(std::move(rental)),
        job_(std::move(job)) {
    remote_.on = rental_.cluster;
    remote_.place.nodes.reset();
    remote_.run_id = job_.run_id;
    remote_.hosts_gone = [this] { return machines_gone(rental_); };
    remote_.on_job = [this](const std::string& id) -> Status {
      job_.job = id;
      LOCKSTEP_TRY(name_to_watcher(world_, job_));
      return world_.journal().note_job(job_);
    };
  }

  int run();

 private:
  int course();
  bool to_leave() const;
  bool is_wanted();
  bool was_taken(const RemoteOutcome& ended);
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
  bool save(const RemoteOutcome& ended);
  int stop_with(const Error& error);
  int leave(const RemoteOutcome& ended);
  int finish(RemoteOutcome ended);
  int give_back(const RemoteOutcome& ended);
  Status hold(const std::string& why);
  void conclude(int code);
  void tell(const std::string& text) const;

  const Call& call_;
  RemoteOptions remote_;
  const OnDemandOptions& options_;
  rent::OnDemand& world_;
  cloud::Rental rental_;
  cloud::RentedJob job_;
  int stops_ = 0;           // signals to end that had come before it
  bool brought_ = false;    // what --back names is here, as the newest attempt has left it
  bool left_ = false;       // it has not ended
  bool elsewhere_ = false;  // somebody else has ended it
};

}  // namespace lockstep::cli
