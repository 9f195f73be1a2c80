// The hosts that a command line means.
#pragma once

#include "base/error.h"
#include "cli/forward_options.h"
#include "cli/place_options.h"
#include "hosts/place.h"

#include <string>
#include <vector>

namespace lockstep::cli {

// where: the name of a cluster, else a host.
Result<std::vector<hosts::HostPlace>> places_of(const std::string& where,
                                                const PlaceOptions& options);

// Of a rented cluster, as its machines are: none is rented anew, and none given back.
Result<std::vector<hosts::HostPlace>> places_as_rented(const std::string& name,
                                                       const PlaceOptions& options);

// The one node of --node, over SSH. Of a cluster without --node it is node 0.
Result<hosts::HostPlace> one_place(const Table& table, const Parsed& parsed,
                                   const std::string& where);

}  // namespace lockstep::cli
