// The guards of rented machines which cannot terminate themselves: each command checks that a guard
// runs, and tells the user how machines end.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "rent/ended_by.h"
#include "rent/on_demand.h"

#include <string>
#include <string_view>

namespace lockstep::cli {

// Returns "itself", "guard", "guard-unheard" or "nobody", for JSON.
const char* ended_by_name(rent::EndedBy by);
// Returns ", guarded on me@host", or "" for a rental that terminates itself. name: from
// ended_by_name(). where: the rental's --guard.
std::string ended_by_words(std::string_view name, std::string_view where);

// Checks that there are credentials for all providers where the rental may have machines.
Status keys_of(const rent::OnDemand& world, const cloud::Rental& rental);

// Reports how jobs ended whose command was gone. Then makes sure that each guarded rental has a
// running guard: restarts a killed guard, here or on its host, and sends that host the present
// state of the rentals. Reports what was done, or why it failed.
void keep_guarded(rent::OnDemand& world, std::string_view program);

// Makes sure that the guard of this machine's rentals runs. A part of keep_guarded().
void keep_guarded_here(rent::OnDemand& world, std::string_view program);

// Checks that the host of --guard can terminate the wished machines. Call this before asking for
// prices. Adds the host's address to the terms if the machines must let the host in.
Status agree_with_guard(rent::OnDemand& world, const cloud::Wish& wish, cloud::Terms& terms);

}  // namespace lockstep::cli
