// Which services nsswitch.conf names for host names, and which of them this program has itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::io {

// The services after "hosts:", as written, without the comment. Where there are several such lines
// the last one counts, as in glibc. nullopt: there is none.
std::optional<std::string> hosts_line(std::string_view nsswitch_conf);

struct NamePlan {
  // A hosts line that names only "files" and "dns", which the C library has built in. "": nothing
  // of the machine's own line can be done in this process.
  std::string in_process;
  bool ask_getent = false;  // for a name that was not found in this process
};

// Without a hosts line: /etc/hosts, then DNS.
NamePlan name_plan(const std::optional<std::string>& line, bool getent_is_there);

}  // namespace lockstep::io
