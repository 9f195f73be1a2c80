// Explains ssh's errors in one line, with the host and the failing hop. Pure.
#pragma once

#include "base/error.h"
#include "ssh/target.h"

#include <string_view>

namespace lockstep::ssh {

// The hint of errors without a retry: the answering machine is another one than the key was made
// for.
inline constexpr const char* kWrongHost = "nothing was sent there; terminate that machine";

// Returns the error for a failed ssh. said: ssh's stderr. locked_key: a private key with a
// passphrase that ssh was not allowed to ask for, or empty.
Error ssh_trouble(const Target& target, std::string_view said, std::string_view locked_key = {});

}  // namespace lockstep::ssh
