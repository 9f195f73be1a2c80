// What of a command's environment goes to the ssh that it starts. An ssh master stays for ten
// minutes and longer, and its environment can be read by whoever may read this user's processes:
// keys of clouds and tokens must not be in it. Pure.
#pragma once

#include <string>
#include <vector>

namespace lockstep::ssh {

// Of "NAME=value": what ssh, its agents, its askpass and usual ProxyCommands need, and the
// variables that LOCKSTEP_SSH_ENV=NAME,NAME names.
std::vector<std::string> ssh_environment(const std::vector<std::string>& own);

}  // namespace lockstep::ssh
