// What the machine's nsswitch.conf asks for host names, and what of it this program can do itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::io {

// The services after "hosts:", as they stand there without the comment; the last such line counts,
// as for glibc. nullopt: there is none.
std::optional<std::string> hosts_line(std::string_view nsswitch_conf);

struct NamePlan {
  // A hosts line of nothing but "files" and "dns", which the C library has built in; "": no part of
  // the machine's own line can be done in this process.
  std::string in_process;
  bool ask_getent = false;  // for a name that was not found in this process
};

// Without a hosts line: /etc/hosts, then DNS.
NamePlan name_plan(const std::optional<std::string>& line, bool getent_is_there);

}  // namespace lockstep::io
