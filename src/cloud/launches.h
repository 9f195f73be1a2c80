// Launches, from the entry in the journal to a known answer.
// - An attempt is on disk before any byte of its launch leaves.
// - A launch without an answer is settled: the provider says whether machines exist.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "cloud/renting_parts.h"

#include <cstddef>

namespace lockstep::cloud {

class Launches {
 public:
  // parts: must outlive this object.
  Launches(const RentParts& parts, const RentRules& rules) : parts_(parts), rules_(rules) {}

  // Makes one launch and adds its attempt to the rental. unknown: the provider did not answer the
  // preparation, so nothing was launched and no attempt was added. An error must stop the renting.
  Result<LaunchOutcome> launch(Rental& rental, Attempt attempt, Provider& provider);
  // Asks until the outcome of an unanswered launch is known, and sets `outcome`. web:
  // RentParts::ending if the machines of the launch are unwanted.
  Status resolve(Rental& rental, std::size_t at, Provider& provider, Web& web,
                 LaunchOutcome& outcome);

 private:
  Status note_call(Rental& rental, Attempt attempt);
  Status settle(Rental& rental, std::size_t at, const LaunchOutcome& outcome);
  void end_listed(const Rental& rental, const Offer& offer, Provider& provider);

  const RentParts& parts_;
  RentRules rules_;
};

}  // namespace lockstep::cloud
