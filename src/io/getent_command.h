// `getent ahosts NAME`: the machine's own C library, with all of its modules, looks a name up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::io {

// Whether the name can be passed to getent: it can't be taken for an option, has no spaces or
// control characters, and is no longer than a host name may be.
bool getent_takes(std::string_view name);
std::vector<std::string> getent_command(const std::string& name);

struct GetentAnswer {
  std::vector<std::string> addresses;  // in digits, in the machine's order
  std::string canonical_name;
};
GetentAnswer parse_getent(std::string_view output);

}  // namespace lockstep::io
