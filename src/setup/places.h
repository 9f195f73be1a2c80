// Names for what setup keeps on a host.
#pragma once

#include <string>

namespace lockstep::setup {

// The folder without links, "." and "..", also where its last parts are not there (yet).
std::string plain_folder(const std::string& folder);

// A name for what belongs to a folder: its base name and a part of its path's digest.
std::string key_of(const std::string& plain_folder);

}  // namespace lockstep::setup
