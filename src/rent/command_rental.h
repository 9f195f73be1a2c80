// Decides which rental a command for machines uses, and which machines are terminated if the
// renting fails.
#pragma once

#include "base/error.h"
#include "cloud/journal.h"
#include "cloud/rental.h"
#include "cloud/renting_parts.h"
#include "rent/gang.h"

#include <functional>
#include <optional>
#include <string>

namespace lockstep::rent {

class OnDemand;

// Refuses the name of a job whose rental another host owns.
Status check_not_owned_elsewhere(cloud::Journal& journal, const std::string& cluster);
// Returns the cluster's existing rental; nullopt: rent anew. unavailable: its machines are being
// terminated.
Result<std::optional<cloud::Rental>> known_rental(OnDemand& world, const std::string& cluster);
// Returns whether all machines exist and an earlier command has made first contact.
bool is_in_use(const cloud::Rental& rental);

// Returns the guard of a new rental. With a job on spot machines it is "here" unless the user chose
// otherwise: the guard continues the job if its command dies.
std::string guard_of_new(const cloud::Terms& terms, const cloud::Wish& wish, bool has_job,
                         bool user_watches);

struct RentTalk {
  TellEvent event;
  TellStep step;
  std::function<void(const std::string& text)> line;
};
// Rents the gang of a new rental, or the missing machines of an existing rental. After an error no
// machine is left, or the error names the rest. Machines in use stay as they are, because a failed
// or interrupted look must not terminate them. keeps_used: false for a job, which begins on these
// machines.
Status rent_or_undo(OnDemand& world, cloud::Rental& rental, Market market,
                    const cloud::RentRules& rules, const RentTalk& talk, bool keeps_used);

}  // namespace lockstep::rent
