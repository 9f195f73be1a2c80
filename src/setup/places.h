// Names for the files that setup keeps on a host.
#pragma once

#include <string>

namespace lockstep::setup {

// Returns the folder without links, "." and "..". Works for a path whose last parts do not exist
// yet.
std::string plain_folder(const std::string& folder);

// Returns a file name for a folder's belongings: the folder's base name and 12 digits of its path's
// digest.
std::string key_of(const std::string& plain_folder);

}  // namespace lockstep::setup
