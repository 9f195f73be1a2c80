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

struct SshdPlace {
  std::string address;  // where sshd is reached; empty: not known
  std::string port;
};

// All as root. The key is made first, so that the client can pin it before sshd shows it: a client
// that is lost on the way never ends before a machine that it does not know. What was made and not
// shown yet is made once.
Result<std::string> make_host_key();
// Whether it can be looked at what sshd really shows.
bool can_see_host_key(const SshdPlace& sshd);
// sees: it can be, so the key counts only once it was seen.
Result<HostKey> show_host_key(const SshdPlace& sshd, bool sees);

}  // namespace lockstep::machine
