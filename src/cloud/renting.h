// Rents the machines of a wish: makes one attempt after another until a whole gang runs. Chooses
// the offers to try, their order, and the time to wait for capacity.
#pragma once

#include "base/error.h"
#include "cloud/choice.h"
#include "cloud/gang_start.h"
#include "cloud/launches.h"
#include "cloud/refusal_memory.h"
#include "cloud/rental.h"
#include "cloud/rented_machines.h"
#include "cloud/renting_parts.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::cloud {

// The judgement on running machines: are they fit for the job?
struct Verdict {
  enum class Kind {
    good,
    bad,   // terminate these machines (some may be gone already) and try the next offer
    stop,  // terminate all machines and give up
  };
  Kind kind = Kind::good;
  Error error = {};
};

class Renting {
 public:
  using AskOffers = std::function<Catalog()>;
  using Judge = std::function<Verdict(Rental&)>;

  explicit Renting(RentParts parts, RentRules rules = {});
  Renting(const Renting&) = delete;
  Renting& operator=(const Renting&) = delete;

  // Rents `rental`, which must be wanted and have keys and user data. Keeps every step in the
  // journal. First settles the launches and machines of an earlier client. On success a whole gang
  // runs, and `judge` has accepted it. After an error no machine is alive, or the error's hint
  // names machines that may be alive.
  Status rent(Rental& rental, const AskOffers& offers, const Judge& judge);

  RentedMachines& machines() { return machines_; }

 private:
  Status course(Rental& rental, const AskOffers& offers, const Judge& judge);
  Status settle_old(Rental& rental);
  Status take_up(Rental& rental, const Judge& judge);
  Result<bool> pass(Rental& rental, const AskOffers& offers, const Judge& judge, bool first);
  void drop_unpaid(const Rental& rental, std::vector<Candidate>& candidates);
  Tried try_offer(Rental& rental, const Candidate& candidate, const Judge& judge);
  Tried judged(Rental& rental, Tried tried, const Offer& offer, const Judge& judge);
  Tried rejected(Rental& rental, const Offer& offer, const Error& why);
  Result<std::int64_t> asked_again_ms(const std::vector<Candidate>& all) const;
  std::string pause_words(std::chrono::milliseconds pause, std::int64_t until_ms) const;

  RentParts parts_;
  RentRules rules_;
  Launches launches_;
  RentedMachines machines_;
  RefusalMemory memory_;
  GangStart gang_;
  bool hope_ = true;           // some offer may have capacity later
  std::int64_t again_ms_ = 0;  // Unix time at which the first offer may be asked again
};

}  // namespace lockstep::cloud
