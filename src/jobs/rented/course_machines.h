// The face of a course's machines to the driver of the course (course_driver.h).
// on_demand_machines.h implements this face; tests use a fake.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "hosts/host_link.h"
#include "rent/rented_host.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace lockstep::jobs::rented {

// Attempt::code of machines that their provider took away, or that went by themselves.
inline constexpr const char* kLostCode = "taken by the provider";

class CourseMachines {
 public:
  explicit CourseMachines(cloud::Rental rental) : rental_(std::move(rental)) {}
  virtual ~CourseMachines() = default;

  const cloud::Rental& rental() const { return rental_; }
  virtual std::int64_t now_ms() const = 0;  // Unix time
  // Takes a pending signal that asks this process to end. 0: there is none.
  virtual int take_signal() = 0;

  // Takes the cluster's lock and reads the rental again: `keep` and `down` may have changed it.
  virtual Status lock() = 0;
  virtual void unlock() = 0;

  // The next three need the lock.
  // Takes up the machines of an earlier request, or requests others, until healthy machines run.
  // on_demand: takes no spot machines from here on. wait: nullopt: for ever.
  virtual Status rent(bool on_demand, std::optional<std::chrono::milliseconds> wait) = 0;
  // Terminates the rest of a lost gang. Returns once the provider reports all machines gone.
  virtual Status drop_lost() = 0;
  // Terminates the machines for good, and tells the user their cost.
  virtual Status give_back() = 0;

  // Returns the rental with the machines as the provider reports them now. nullopt: no answer.
  virtual std::optional<cloud::Rental> look() = 0;
  // Returns the places of the machines, by node. unavailable: they are gone, or the name belongs to
  // another rental.
  virtual Result<std::vector<hosts::HostPlace>> places() = 0;
  // Asks the machines about their leases.
  virtual Result<std::vector<rent::LeaseAnswer>> leases() = 0;
  // Keeps the machines from ending as idle.
  virtual Status hold(std::int64_t seconds) = 0;

 protected:
  cloud::Rental rental_;
};

}  // namespace lockstep::jobs::rented
