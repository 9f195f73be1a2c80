// Identifies this user's Lockstep on this machine, independently of the hostname.
#pragma once

#include <string>

namespace lockstep::project {

// Returns a random id that is made once and kept in the user's state folder (`sync-id`). Empty if
// nothing can be kept there: hosts then go by the name of this machine. The file `installation`
// beside `sync-id` belongs to the journal, which names rented machines.
std::string installation_id();

}  // namespace lockstep::project
