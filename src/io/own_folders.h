// Where Lockstep keeps this user's files on this machine. A variable that is no absolute path
// counts as not set.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::io {

// $HOME, else what /etc/passwd says, else "/".
std::string home_folder();

std::string state_folder();  // $XDG_STATE_HOME/lockstep, else ~/.local/state/lockstep
std::string cache_folder();  // $XDG_CACHE_HOME/lockstep, else ~/.cache/lockstep
std::string data_folder();   // $XDG_DATA_HOME/lockstep, else ~/.local/share/lockstep

// Makes what is missing of an absolute path, for this user alone (0700).
Status make_folders(const std::string& path);

// Makes or finds this user's own folder in a place where everybody may write (/tmp):
// `lockstep-UID`. Where another user has that name already, `lockstep-UID-2` to `-9`, and says so
// once. open_to: mode bits that others may have (0 or 0055). denied: others have all of these
// names.
Result<std::string> own_folder_in(const std::string& place, unsigned int open_to);

// The home of the user with this number in the text of /etc/passwd; empty: it is not there. Pure.
std::string home_in_passwd(std::string_view passwd, unsigned int user);

}  // namespace lockstep::io
