// The loop of the guard on this machine (guard.h): read the journal, start missing followers, ask
// the machines about their leases, terminate what is over, wait.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "cloud/rented_job.h"
#include "hosts/host_link.h"
#include "io/fd.h"
#include "proc/spawn.h"
#include "rent/follow_plan.h"
#include "rent/guard_plan.h"
#include "rent/job_claim.h"
#include "rent/on_demand.h"
#include "rent/rented_host.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::rent {

class Guard {
 public:
  // How the loop reaches other processes and machines. A test replaces these.
  struct Reach {
    std::function<Result<std::unique_ptr<OnDemand>>()> open = OnDemand::open;
    std::function<Result<std::vector<LeaseAnswer>>(const std::vector<hosts::HostPlace>&)> leases =
        ask_leases;
    std::function<Result<proc::Child>(const std::string& rental)> follower = start_follower;
  };

  Guard(std::unique_ptr<OnDemand> world, GuardPace pace, Reach reach)
      : world_(std::move(world)), pace_(pace), reach_(std::move(reach)) {}

  // Returns when nothing is left to guard. canceled: by a signal. alive: guard.lock, released
  // before the return.
  Status run(io::Fd alive);

 private:
  struct Trouble {
    int failures = 0;
    std::int64_t again_ms = 0;
    std::int64_t look_ms = 0;  // when the provider is asked about its machines next
  };

  std::int64_t now() const { return world_->web().now_ms(); }
  // If the clock was set back, `when` may lie far ahead. A distance above `most` does not count, so
  // nothing waits for hours.
  bool is_later(std::int64_t when, std::int64_t most) const {
    return when > now() && when - now() <= most;
  }
  void say(const std::string& text);
  Result<std::vector<cloud::Rental>> guarded();
  bool is_followed(const cloud::Rental& rental) const {
    return unended_job(jobs_, rental) != nullptr;
  }
  Status follow(const cloud::Rental& rental);
  Status leave_job(cloud::RentedJob job);
  Status ask_machines(const std::vector<cloud::Rental>& rentals);
  Status look_after(const cloud::Rental& rental);
  Status act(const cloud::Rental& rental);
  Status act_locked(cloud::Rental& rental, const GuardPlan& plan);
  Status end_now(const cloud::Rental& rental, const std::vector<std::size_t>& machines);
  std::int64_t pause_until(const std::vector<cloud::Rental>& rentals) const;
  void read_keys_again();

  std::unique_ptr<OnDemand> world_;
  GuardPace pace_;
  Reach reach_;
  MachineWords words_;
  std::vector<cloud::RentedJob> jobs_;
  std::map<std::string, FollowTries> follows_;  // by rental id
  std::vector<proc::Child> followers_;
  std::map<std::string, Trouble> troubles_;  // by rental id
  std::string said_;
};

}  // namespace lockstep::rent
