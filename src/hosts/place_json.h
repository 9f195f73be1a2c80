// Converts the places of a job's nodes to and from JSON for the client's records. Pure.
#pragma once

#include "base/error.h"
#include "hosts/host_link.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hosts {

std::string places_text(const std::vector<HostPlace>& places);
Result<std::vector<HostPlace>> parse_places(std::string_view text);

}  // namespace lockstep::hosts
