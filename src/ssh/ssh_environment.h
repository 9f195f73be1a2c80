// The part of a command's environment for its ssh processes. An ssh master stays for ten minutes or
// longer, and other processes of this user can read its environment. So cloud keys and tokens must
// be left out. Pure.
#pragma once

#include <string>
#include <vector>

namespace lockstep::ssh {

// Returns the "NAME=value" needed by ssh, its agents, its askpass and common ProxyCommands, and the
// variables named in LOCKSTEP_SSH_ENV=NAME,NAME.
std::vector<std::string> ssh_environment(const std::vector<std::string>& own);

}  // namespace lockstep::ssh
