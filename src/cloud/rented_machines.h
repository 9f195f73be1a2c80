// The machines of a rental: their state by the providers' lists, and their termination.
#pragma once

#include "base/error.h"
#include "cloud/launches.h"
#include "cloud/rental.h"
#include "cloud/renting_parts.h"

#include <cstddef>
#include <set>
#include <string>
#include <utility>

namespace lockstep::cloud {

class RentedMachines {
 public:
  // parts: must outlive this object.
  explicit RentedMachines(const RentParts& parts, const RentRules& rules = {})
      : parts_(parts), rules_(rules), launches_(parts, rules) {}

  // Updates the state of all machines from the providers' lists. note: also writes the state to the
  // journal.
  Status look(Rental& rental, bool note = true);
  // Updates the machines of an attempt, and terminates machines that no attempt has requested.
  void update(Rental& rental, Attempt& attempt, Provider& provider);

  // Terminates all machines, and closes the rental once all machines were seen gone.
  Status give_back(Rental& rental);
  // Terminates the open attempts of a rental that stays wanted: its machines were preempted or bad.
  Status end_all(Rental& rental, const std::string& why);

 private:
  Status see(Rental& rental, Attempt& attempt, Provider& provider, Web& web);
  Status ask_to_end(Attempt& attempt, Provider& provider, Web& web);
  void tell_refused_end(const Attempt& attempt, const Provider& provider, const Error& why);
  void start_ending(Attempt& attempt, const std::string& why) const;
  Status end_attempt(Rental& rental, std::size_t at, const std::string& why);
  Failure not_gone(const Offer& offer, const Error& trouble) const;

  const RentParts& parts_;
  RentRules rules_;
  Launches launches_;
  std::set<std::pair<int, std::string>> refused_ends_;  // reported attempts and reasons
};

}  // namespace lockstep::cloud
