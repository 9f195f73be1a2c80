// Replaces the host key of this machine's sshd. User data carried the first key, and every process
// on the machine can read user data.
#pragma once

#include "base/error.h"

#include <string>

namespace lockstep::machine {

struct HostKey {
  std::string public_line;  // the key that sshd shows now
  bool fresh = false;
  std::string note = {};  // why sshd still shows the old key
};

struct SshdPlace {
  std::string address;  // where sshd is reached; empty: unknown
  std::string port;
};

// All of these need root. The key is made before sshd shows it, so that a client can pin it first.
// A client cut off in between still knows the machine. A key made earlier and not shown yet is
// reused.
Result<std::string> make_host_key();
// Returns true if sshd's real key can be read back.
bool can_see_host_key(const SshdPlace& sshd);
// Makes sshd show the new key. sees: result of can_see_host_key(); then the new key must be seen,
// and otherwise the old one is restored.
Result<HostKey> show_host_key(const SshdPlace& sshd, bool sees);

}  // namespace lockstep::machine
