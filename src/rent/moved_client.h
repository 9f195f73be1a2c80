// Follows this machine to a new public address. A rented machine's ssh port is open only to the
// address of the renting machine. During a slow ssh login a thread looks whether this machine has
// moved, and opens the port to the new address while ssh still retries. Otherwise the thread tells
// why the machine does not answer.
#pragma once

#include "ssh/target.h"

#include <string>

namespace lockstep::rent {

// Call this from ssh::tell_slow_logins(). Returns at once. Ignores hosts that are not rented.
void on_slow_login(const ssh::Target& target, const std::string& pins);
// Call this before exec(). Waits until a change in progress at a provider is complete.
void finish_slow_logins();

}  // namespace lockstep::rent
