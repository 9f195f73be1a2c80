#include "cli/places.h"

#include "cluster/registry.h"
#include "io/own_folders.h"

namespace lockstep::cli {

Result<std::vector<cluster::HostPlace>> places_of(const std::string& where,
                                                  const PlaceOptions& options) {
  LOCKSTEP_TRY_ASSIGN(const cluster::Registry registry,
                      cluster::Registry::open(io::state_folder()));
  return cluster::find_places(registry, where, options.nodes,
                              {options.user, options.key_path, options.jump});
}

}  // namespace lockstep::cli
