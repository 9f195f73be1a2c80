// From the words of a command line to the hosts that the user means.
#pragma once

#include "base/error.h"
#include "cli/forward_options.h"
#include "cli/place_options.h"
#include "hosts/place.h"

#include <string>
#include <vector>

namespace lockstep::cli {

// Returns the hosts of a place, at least one. where: the name of a cluster, else a host. For a
// cluster that is rented on use, rents the machines first.
Result<std::vector<hosts::HostPlace>> places_of(const std::string& where,
                                                const PlaceOptions& options);

// Returns the node that --node names, else node 0 of a cluster. Errors: invalid_input (this machine
// itself, which needs no SSH).
Result<hosts::HostPlace> one_place(const Table& table, const Parsed& parsed,
                                   const std::string& where);

}  // namespace lockstep::cli
