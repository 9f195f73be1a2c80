// What a machine's `lockstep host-lease` answers. Pure: it comes from a machine that is trusted no
// further than this.
#pragma once

#include "base/error.h"
#include "machine/lease_terms.h"

#include <string>
#include <string_view>

namespace lockstep::cluster {

struct BegunLease {
  std::string error = {};  // why there is none; empty: it runs
  std::string host_key = {};
  bool fresh = false;
  std::string note = {};
  machine::LeaseState state = {};
};
BegunLease read_begun_lease(std::string_view line);

// The state alone, as keep, hold and status answer.
Result<machine::LeaseState> read_lease_state(std::string_view line);

}  // namespace lockstep::cluster
