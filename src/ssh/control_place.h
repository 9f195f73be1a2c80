// The folder of our ssh masters' control sockets, which only this user can enter.
#pragma once

#include "base/error.h"
#include "ssh/target.h"

#include <string>
#include <string_view>

namespace lockstep::ssh {

// Makes and returns the folder: $XDG_RUNTIME_DIR/lockstep, else /tmp/lockstep-UID, or
// /tmp/lockstep-UID-2 and so on if another user took that name (own_folder_in()), else `ssh` in the
// user's state folder. denied: other users could enter the folder.
Result<std::string> control_folder();

// Returns the socket's path for a target. pins: targets with different pins do not share a master.
Result<std::string> control_socket(const Target& target, std::string_view pins);

}  // namespace lockstep::ssh
