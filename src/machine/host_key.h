// A fresh host key for this machine's sshd in place of the one that user data has carried, which
// everything on the machine can read.
#pragma once

#include "base/error.h"

#include <string>

namespace lockstep::machine {

struct HostKey {
  std::string public_line;  // that sshd shows now
  bool fresh = false;
  std::string note = {};  // why it is still the old one
};

// Both as root. The key is made first, so that the client can pin it before sshd shows it: a client
// that is lost on the way never ends before a machine that it does not know. What was made and not
// shown yet is made once.
Result<std::string> make_host_key();
// address, port: where sshd is reached, for a look at what it really shows; empty: none is taken.
Result<HostKey> show_host_key(const std::string& address, const std::string& port);

}  // namespace lockstep::machine
