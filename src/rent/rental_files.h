// The files of a rental in this user's state folder: its keys, and the note of its last use.
#pragma once

#include "base/error.h"

#include <string>

namespace lockstep::rent {

// Returns the folder of the cluster's keys.
std::string rental_folder(const std::string& cluster);
// Returns the path of the private key for the cluster's machines.
std::string user_key_file(const std::string& cluster);
// Returns the path of the private host key made for the cluster's machines.
std::string host_key_file(const std::string& cluster);
// Returns the file whose modification time says when the cluster was last used from here.
std::string used_file(const std::string& cluster);
void note_use(const std::string& cluster);
// Removes all of these files. Call only when no machine is left: its keys are needed until then.
void remove_rental_files(const std::string& cluster);

}  // namespace lockstep::rent
