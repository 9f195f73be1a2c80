// Makes rentals, rents their machines, asks for the machines' state, and terminates them. Tells the
// guard and the registry of clusters of each change.
#pragma once

#include "base/error.h"
#include "cloud/choice.h"
#include "cloud/rental.h"
#include "cloud/renting_parts.h"
#include "rent/first_contact.h"
#include "rent/market.h"

#include <chrono>
#include <functional>
#include <string>

namespace lockstep::rent {

class OnDemand;

using TellEvent = std::function<void(const cloud::RentEvent&)>;
// Terminates the machines by give_back(). Each command adds its own lines for the user.
using EndMachines = std::function<Status(cloud::Rental& rental)>;

// Makes a rental for this cluster, with keys and user data. The journal does not have it yet.
Result<cloud::Rental> new_rental(OnDemand& world, const std::string& cluster,
                                 const cloud::Wish& wish, const cloud::Terms& terms);
// Makes a new host key and new user data, for machines that replace others.
Status new_keys(const OnDemand& world, cloud::Rental& rental);
// Rents until a healthy gang runs and stands in the registry. market: the offers that the user has
// seen; the providers are asked again if it is stale.
Status rent_gang(OnDemand& world, cloud::Rental& rental, Market market,
                 const cloud::RentRules& rules, const TellEvent& tell, const TellStep& step);
// Terminates the machines and removes their cluster. Continues after a first signal to stop; a
// second signal ends it. patience: how long to wait until the providers report all machines gone.
Status give_back(OnDemand& world, cloud::Rental& rental, const TellEvent& tell,
                 std::chrono::milliseconds patience = cloud::RentRules{}.end_patience);
// Terminates the machines, which are preempted or of no use, and keeps the rental for new ones.
Status drop_machines(OnDemand& world, cloud::Rental& rental, const std::string& why,
                     const TellEvent& tell);
// Asks the providers for the state of the machines and writes it into the journal.
Status look(OnDemand& world, cloud::Rental& rental);
// Like look(), but does not write into the journal.
Status look_only(OnDemand& world, cloud::Rental& rental);
Status look_only(OnDemand& world, cloud::Rental& rental, cloud::Web& web);

}  // namespace lockstep::rent
