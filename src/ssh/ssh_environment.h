// The part of a command's environment that goes to the ssh processes it starts. An ssh master stays
// for ten minutes or longer, and anyone who may inspect this user's processes can read its
// environment. So cloud keys and tokens must not be in it. Pure.
#pragma once

#include <string>
#include <vector>

namespace lockstep::ssh {

// Returns the "NAME=value" that ssh, its agents, its askpass and common ProxyCommands need, and the
// variables named by LOCKSTEP_SSH_ENV=NAME,NAME.
std::vector<std::string> ssh_environment(const std::vector<std::string>& own);

}  // namespace lockstep::ssh
