// The sweep of one command: what providers have of ours is asked beside what the command does
// anyway, and compared with the journal once its own answer is there.
#pragma once

#include "base/error.h"
#include "cloud/reconcile.h"
#include "cloud/rental.h"

#include <functional>
#include <future>
#include <string>
#include <vector>

namespace lockstep::cluster {

class OnDemand;

class Sweep {
 public:
  enum class When {
    // Unless nothing is rented, and a look at the same providers less than a minute ago, with no
    // launch since, has heard all of them and found nothing of ours.
    due,
    always,
  };

  // Asks from now on, where there are keys. While it lasts nobody else may use what is to end
  // machines (OnDemand::give_back and rent).
  Sweep(OnDemand& world, When when);

  bool under_way() const { return heard_.valid(); }
  void wait() const;
  // Ends what nobody wants, and closes what is gone. Lists are waited for no longer than
  // kMostListing in all, ends kMostEnding. waiting: is called once, where it takes so long that
  // somebody may wonder.
  Result<cloud::Reconciled> finish(const std::function<void()>& waiting = {});

  static constexpr std::chrono::seconds kMostListing{10};
  static constexpr std::chrono::seconds kMostEnding{20};

 private:
  OnDemand& world_;
  std::string asked_;  // the names of the providers
  std::vector<cloud::Rental> before_;
  // Its destructor waits.
  std::future<std::vector<cloud::Heard>> heard_;
};

}  // namespace lockstep::cluster
