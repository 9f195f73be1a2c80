// Rented machines let one address in: that of the machine they were rented from. Where a login to
// one takes long, this machine may have moved. A thread finds that out meanwhile and opens the port
// to where it is now, in time for the ssh that still tries; or it says why nobody answers.
#pragma once

#include "ssh/target.h"

#include <string>

namespace lockstep::rent {

// For ssh::tell_slow_logins(). Returns at once; does nothing for hosts that are not rented.
void on_slow_login(const ssh::Target& target, const std::string& pins);
// Before this process becomes another one: what is under way at a provider is finished.
void finish_slow_logins();

}  // namespace lockstep::rent
