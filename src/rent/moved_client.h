// Follows this machine when its public address changes. A rented machine's ssh port is open to one
// address, that of the machine it was rented from. When an ssh login takes long, a thread looks
// whether this machine has moved, and opens the port to the new address while ssh still retries.
// Else it tells why the machine does not answer.
#pragma once

#include "ssh/target.h"

#include <string>

namespace lockstep::rent {

// Call this from ssh::tell_slow_logins(). Returns at once. Does nothing for hosts that are not
// rented.
void on_slow_login(const ssh::Target& target, const std::string& pins);
// Call this before exec(). Waits until a change that is in progress at a provider is complete.
void finish_slow_logins();

}  // namespace lockstep::rent
