// `getent ahosts NAME`: a look-up by the machine's own C library with all its modules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::io {

// Returns whether the name can be passed to getent: not mistakable for an option, without blanks or
// control characters, and no longer than a host name may be.
bool getent_takes(std::string_view name);
std::vector<std::string> getent_command(const std::string& name);

struct GetentAnswer {
  std::vector<std::string> addresses;  // numeric, in the machine's order
  std::string canonical_name;
};
GetentAnswer parse_getent(std::string_view output);

}  // namespace lockstep::io
