// The names in a folder.
#pragma once

#include <string>
#include <vector>

namespace lockstep::io {

// Returns the names of all entries but "." and "..", unsorted. A folder that cannot be read gives
// none; an error in the middle, as on a network file system, ends the list.
std::vector<std::string> names_in(const std::string& folder);

}  // namespace lockstep::io
