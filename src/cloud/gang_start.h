// Starts a gang at one offer: the launches of all nodes, then the wait until all machines run.
// - No node ever has two launches under way at once.
// - While a launch is unanswered, no other launch is made.
#pragma once

#include "cloud/choice.h"
#include "cloud/launches.h"
#include "cloud/refusal_memory.h"
#include "cloud/rental.h"
#include "cloud/rented_machines.h"

#include <optional>

namespace lockstep::cloud {

class GangStart {
 public:
  // All but the rules must outlive this object.
  GangStart(const RentParts& parts, const RentRules& rules, Launches& launches,
            RentedMachines& machines, RefusalMemory& memory)
      : parts_(parts), rules_(rules), launches_(launches), machines_(machines), memory_(memory) {}

  // Launches all nodes. A refused node refuses the gang: the caller terminates the other nodes.
  Tried launch(Rental& rental, const Candidate& candidate);
  // Waits until the launched machines run.
  Tried bring_up(Rental& rental);
  // Updates all machines. Returns a refusal if a machine is lost.
  std::optional<Tried> lost_one(Rental& rental);

 private:
  Tried launch_node(Rental& rental, Attempt attempt, Provider& provider);

  const RentParts& parts_;
  RentRules rules_;
  Launches& launches_;
  RentedMachines& machines_;
  RefusalMemory& memory_;
};

}  // namespace lockstep::cloud
