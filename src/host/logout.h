// What systemd's logind does with the processes of a user who logs out.
#pragma once

#include <string>

namespace lockstep::host {

// Returns whether logind kills all of them, according to logind.conf and its drop-ins below `root`.
// Lingering does not help: it keeps the user's manager, but not processes left by a session.
bool logout_kills(const std::string& root, const std::string& user);

}  // namespace lockstep::host
