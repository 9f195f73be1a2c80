// Identifies this user's Lockstep on this machine, independently of the hostname.
#pragma once

#include <string>

namespace lockstep::project {

// A random id that is made once and kept in the user's state folder (`sync-id`). Empty where
// nothing can be kept there: hosts then go by this machine's name. The file `installation` beside
// it is the journal's, which names rented machines.
std::string installation_id();

}  // namespace lockstep::project
