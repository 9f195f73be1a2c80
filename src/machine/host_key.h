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

// As root. address, port: where sshd is reached, for a look at what it really shows; empty: none is
// taken.
Result<HostKey> renew_host_key(const std::string& address, const std::string& port);

}  // namespace lockstep::machine
