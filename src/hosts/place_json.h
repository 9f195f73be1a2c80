// Where a job's nodes are, as JSON that the client keeps. Pure.
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
