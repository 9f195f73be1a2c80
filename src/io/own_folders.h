// The folders for this user's Lockstep files on this machine. A variable without an absolute path
// counts as unset.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::io {

// Returns $HOME, else the home in /etc/passwd, else "/".
std::string home_folder();

std::string state_folder();  // $XDG_STATE_HOME/lockstep, else ~/.local/state/lockstep
std::string cache_folder();  // $XDG_CACHE_HOME/lockstep, else ~/.cache/lockstep
std::string data_folder();   // $XDG_DATA_HOME/lockstep, else ~/.local/share/lockstep

// Makes the missing parts of an absolute path, with mode 0700.
Status make_folders(const std::string& path);

// Makes or finds this user's own folder in a world-writable place (/tmp): `lockstep-UID`. If
// another user has taken that name, uses `lockstep-UID-2` to `-9` and logs this once. open_to: mode
// bits allowed for others (0 or 0055). Fails with denied if all names are taken.
Result<std::string> own_folder_in(const std::string& place, unsigned int open_to);

// Returns the home of a user number from the text of /etc/passwd. Empty: no such user. Pure.
std::string home_in_passwd(std::string_view passwd, unsigned int user);

}  // namespace lockstep::io
