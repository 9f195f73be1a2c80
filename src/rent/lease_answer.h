// What a machine's `lockstep host-lease` answers. Pure: it comes from a machine that is trusted no
// further than this.
#pragma once

#include "base/error.h"
#include "machine/lease_terms.h"

#include <string>
#include <string_view>

namespace lockstep::rent {

struct KeyAnswer {
  std::string error = {};  // why there is none; empty: it was made, or is shown
  std::string host_key = {};
  bool fresh = false;
  bool seen = false;  // it can be looked at what sshd shows
  std::string note = {};
};
KeyAnswer read_key_answer(std::string_view line);

// One line, and nothing in it that a known_hosts file would read as more.
bool is_host_key(const std::string& line);

// As begin, keep, hold and status answer.
Result<machine::LeaseState> read_lease_state(std::string_view line);

}  // namespace lockstep::rent
