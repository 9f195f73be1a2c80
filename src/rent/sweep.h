// The sweep of one command: what providers have of ours is asked beside what the command does
// anyway, and compared with the journal once its own answer is there.
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

// The questions what there is of ours, of each provider in heard.
std::vector<Asking::Job> lists_of(std::vector<cloud::Heard>& heard);

class Sweep {
 public:
  enum class When {
    // Unless nothing is rented, and a look at the same providers less than a minute ago, with no
    // launch since, has heard all of them and found nothing of ours.
    due,
    always,
  };

  // Asks from now on, where there are keys. While it lasts nobody else may use what is to end
  // machines (OnDemand::give_back and rent). waiting: of wait() and finish().
  Sweep(OnDemand& world, When when, Asking::Waiting waiting = {});
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;
  ~Sweep();  // what is not finished ends at once

  // Until all have said what they have, or kMostListing is over.
  void wait();
  // Ends what nobody wants, and closes what is gone, which takes no longer than kMostEnding.
  Result<cloud::Reconciled> finish();

  static constexpr std::chrono::seconds kMostListing{10};
  static constexpr std::chrono::seconds kMostEnding{20};
  // Where a question must wait for its turn, the command's own go first, for so long at most.
  static constexpr std::chrono::seconds kAfterOwn{2};

 private:
  OnDemand& world_;
  Asking::Waiting waiting_;
  std::string asked_;  // the names of the providers
  std::vector<cloud::Rental> before_;
  std::optional<cloud::BoundedWeb> web_;
  std::vector<cloud::Heard> heard_;
  std::optional<std::promise<void>> own_questions_;  // given up when they are answered
  std::optional<Asking> asking_;
};

}  // namespace lockstep::rent
