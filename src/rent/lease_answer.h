// Reads the answers of `lockstep host-lease` on a rented machine. The machine is not trusted, so
// every member is checked. Pure.
#pragma once

#include "base/error.h"
#include "machine/lease_terms.h"

#include <string>
#include <string_view>

namespace lockstep::rent {

// The answer to `host-lease make-key` and `show-key`.
struct KeyAnswer {
  std::string error = {};  // why there is no key; empty: the key was made, or is shown
  std::string host_key = {};
  bool fresh = false;
  bool seen = false;  // the machine can read which key sshd shows
  std::string note = {};
};
KeyAnswer read_key_answer(std::string_view line);

// Returns whether the text is a single host key line, and nothing else to a reader of known_hosts.
bool is_host_key(const std::string& line);

// Reads the answer of begin, keep, hold and status. corrupt: not an answer; unavailable: the
// machine reports an error.
Result<machine::LeaseState> read_lease_state(std::string_view line);

}  // namespace lockstep::rent
