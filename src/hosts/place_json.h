// Converts the places of a job's nodes to and from JSON, for the client's records and for rsync's
// shell. Pure.
#pragma once

#include "base/error.h"
#include "hosts/host_link.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hosts {

// Returns a JSON list. Keeps what a connection needs; `slots`, `login` and `like` are left out.
std::string places_text(const std::vector<HostPlace>& places);
// Reads the text of places_text(), also of older versions: unknown members are ignored. corrupt:
// not a list of objects.
Result<std::vector<HostPlace>> parse_places(std::string_view text);

}  // namespace lockstep::hosts
