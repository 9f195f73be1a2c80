// Decides whether a command may use the machines of a rented cluster, which may have ended since
// the cluster's last use.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "hosts/registry.h"
#include "rent/gang.h"

#include <cstdint>
#include <string>

namespace lockstep::rent {

class OnDemand;

// Returns whether the machines are there for certain, without a question to a provider: they were
// used within the idle limit, and nothing but the idle limit ends them now. Notes this use.
bool use_surely_there(const cloud::Rental& rental, const hosts::Cluster& known,
                      std::int64_t now_ms);

struct MachinesForUse {
  enum class Kind {
    all,   // the command may use them; this use is noted
    some,  // machines of a gang were lost; the command may use the nodes `left`
    none,  // no machine is left, or the rental is not known
  };
  Kind kind = Kind::none;
  std::string left = {};  // "0,2"
};

// Asks the providers for the machines of a rented cluster, and notes the use. Terminates what is
// left if none can be used, after a second look under the cluster's lock: another lockstep may have
// rented again meanwhile. Never terminates the rest of a gang that has lost a machine: a job may
// run there, or its only outputs may be there. unavailable: the rental has a job, whose own course
// replaces the machines.
Result<MachinesForUse> find_machines_for_use(OnDemand& world, const hosts::Registry& registry,
                                             const std::string& cluster,
                                             const EndMachines& end_rest);

}  // namespace lockstep::rent
