// What systemd's logind does with the processes of a user who logs out.
#pragma once

#include <string>

namespace lockstep::host {

// Whether it ends all of them, as logind.conf and its drop-ins in `root` say. Lingering is no way
// out: it keeps the user's manager, not what a session has left.
bool logout_kills(const std::string& root, const std::string& user);

}  // namespace lockstep::host
