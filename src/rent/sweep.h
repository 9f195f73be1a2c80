// The sweep that runs beside a command: asks providers which of our machines exist while the
// command does its work, then compares their answers with the journal.
#pragma once

#include "base/error.h"
#include "cloud/bounded_web.h"
#include "cloud/reconcile.h"
#include "cloud/rental.h"
#include "rent/asking.h"

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rent {

class OnDemand;

// Runs a whole sweep now, without a time limit.
Result<cloud::Reconciled> sweep_now(OnDemand& world, const Asking::Waiting& waiting);
// Makes the next sweep ask the providers: a launch may leave a machine behind.
void forget_clean_sweep(const OnDemand& world);

class Sweep {
 public:
  enum class When {
    // Skip the sweep if nothing is rented and the last clean one is less than a minute old. Clean:
    // all these providers answered, none had a machine of ours, and nothing was launched since.
    due,
    always,
  };

  // Starts asking at once, if there are credentials. Until it is finished nothing else may use
  // OnDemand::side(), as give_back() and rent_gang() do. waiting: as in Asking::wait().
  Sweep(OnDemand& world, When when, Asking::Waiting waiting = {});
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;
  ~Sweep();  // stops requests that are in progress

  // Waits until all providers have answered, for kMostListing at most.
  void wait();
  // Terminates machines without a rental and closes rentals without machines. Takes kMostEnding at
  // most.
  Result<cloud::Reconciled> finish();

  static constexpr std::chrono::seconds kMostListing{10};
  static constexpr std::chrono::seconds kMostEnding{20};
  // For a provider that limits the rate of requests, the command's own requests go first. The sweep
  // waits for them this long.
  static constexpr std::chrono::seconds kAfterOwn{2};

 private:
  OnDemand& world_;
  Asking::Waiting waiting_;
  std::string asked_;  // the providers' names
  std::vector<cloud::Rental> before_;
  std::optional<cloud::BoundedWeb> web_;
  std::vector<cloud::Heard> heard_;
  std::optional<std::promise<void>> own_questions_;  // broken to let waiting questions go
  std::optional<Asking> asking_;
};

}  // namespace lockstep::rent
