#include "cli/places.h"

#include "base/log.h"
#include "base/text.h"
#include "cli/rented_places.h"
#include "hosts/registry.h"
#include "io/own_folders.h"
#include "jobs/rented/owned_job.h"

#include <utility>

namespace lockstep::cli {

Result<std::vector<hosts::HostPlace>> places_of(const std::string& where,
                                                const PlaceOptions& options) {
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(io::state_folder()));
  // Only names need the journal of rentals: 'local' and user@host cannot be a rented cluster.
  if (hosts::check_cluster_name(where) && !registry.find(where)) {
    const auto courses = jobs::rented::read_courses();
    // A damaged journal names no cluster any more, so the name can only be a host's.
    if (!courses && courses.error().code == Errc::corrupt)
      log::warning("{}; '{}' is taken for a host", courses.error().message, printable(where));
    else
      LOCKSTEP_TRY(jobs::rented::check_machines_here(where, courses));
  }
  // A rented cluster may have lost its machines since its last use, or never had any.
  LOCKSTEP_TRY(ensure_rented(registry, where));
  return hosts::find_places(registry, where, options.nodes,
                            {options.user, options.key_path, options.jump});
}

Result<hosts::HostPlace> one_place(const Table& table, const Parsed& parsed,
                                   const std::string& where) {
  LOCKSTEP_TRY_ASSIGN(auto places, places_of(where, one_node_options(table, parsed).places));
  if (places.front().here)
    return fail(Errc::invalid_input, "'local' is this machine", "name a host");
  return std::move(places.front());
}

}  // namespace lockstep::cli
