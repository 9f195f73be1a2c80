// Where the control sockets of our ssh masters lie: a folder that only this user can enter.
#pragma once

#include "base/error.h"
#include "ssh/target.h"

#include <string>
#include <string_view>

namespace lockstep::ssh {

// Makes and returns the folder of the sockets: $XDG_RUNTIME_DIR/lockstep, else /tmp/lockstep-UID,
// or /tmp/lockstep-UID-2 and so on if another user took that name (own_folder_in()), else `ssh` in
// the user's state folder. Error denied: other users could enter the folder.
Result<std::string> control_folder();

// The socket for a target in that folder. pins: targets with other pins don't share a master.
Result<std::string> control_socket(const Target& target, std::string_view pins);

}  // namespace lockstep::ssh
