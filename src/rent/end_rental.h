// Terminates a rental at its user's wish, even while another process works on it, and removes what
// rentals leave in the providers' accounts.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "rent/gang.h"

#include <functional>
#include <string>
#include <vector>

namespace lockstep::rent {

class OnDemand;

// Terminates the machines of the rental as it is under the cluster's lock, and forgets its job. A
// renting command that holds the lock stops once the journal says that the rental is not wanted, a
// course once the journal no longer has its job. waits: called once if another process holds the
// lock. Returns false if the machines are gone already; `rental` is then as the journal has it.
// unavailable: the other process has not ended within three minutes.
Result<bool> end_rental(OnDemand& world, cloud::Rental& rental, const std::function<void()>& waits,
                        const EndMachines& end);

struct CleanedAccount {
  std::string provider;
  Status cleaned;
};
// Removes the keys and firewall rules of renting, once no rental is open. Does so once for each
// provider after its last rental. Leftovers cost nothing.
std::vector<CleanedAccount> clean_accounts(OnDemand& world);

}  // namespace lockstep::rent
