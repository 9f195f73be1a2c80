// The services that nsswitch.conf names for host names, and which of them this program contains.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::io {

// Returns the services after "hosts:" as written, without the comment. Of several such lines the
// last one counts, as in glibc. nullopt: no such line.
std::optional<std::string> hosts_line(std::string_view nsswitch_conf);

struct NamePlan {
  // A hosts line with "files" and "dns" only, which are built into this program's C library. "": no
  // service of the machine's line works in this process.
  std::string in_process;
  bool ask_getent = false;  // for names not found in this process
};

// Returns the plan for a hosts line. Without one: /etc/hosts, then DNS.
NamePlan name_plan(const std::optional<std::string>& line, bool getent_is_there);

}  // namespace lockstep::io
