// Facts about a private key without its passphrase. Pure.
#pragma once

#include <string_view>

namespace lockstep::ssh {

// Returns true if the key is encrypted, in OpenSSH's own format or a PEM format.
bool needs_passphrase(std::string_view file);

}  // namespace lockstep::ssh
