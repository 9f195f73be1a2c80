// What a private key's file tells without its passphrase. Pure.
#pragma once

#include <string_view>

namespace lockstep::ssh {

// Whether only a passphrase opens it: OpenSSH's own format, or one of the PEM formats.
bool needs_passphrase(std::string_view file);

}  // namespace lockstep::ssh
