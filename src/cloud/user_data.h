// The first-boot text of a rented machine: the keys that may log in, the machine's host key, and a
// timer that terminates the machine if no client ever connects. Pure.
#pragma once

#include "base/error.h"
#include "cloud/guard_timer.h"
#include "cloud/key_pair.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::cloud {

struct FirstBoot {
  KeyPair host_key;             // for the first contact only: any program there can read it
  std::string user_public_key;  // "ssh-ed25519 AAAA... lockstep"
  std::int64_t guard_s = 1200;  // the machine then ends itself, unless a lease replaced the timer
};

// Returns the text for cloud-init (LaunchSpec::user_data of virtual machines), under 4 KiB.
Result<std::string> cloud_config(const FirstBoot& boot);

// Returns the script for containers, which have no cloud-init. The script runs as root instead of
// the image's own command. It arms the timer, writes the keys, installs sshd if missing, and
// becomes sshd.
Result<std::string> container_start(const FirstBoot& boot, const MachineEnding& ending);

// A container gets the script in base64 in kStartVariable, and runs kStartCommand. The script
// contains the host key, so it must be in no command line.
inline constexpr std::string_view kStartVariable = "LOCKSTEP_START";
inline constexpr std::string_view kStartCommand =
    "sh -c 'echo \"$LOCKSTEP_START\" | base64 -d >/tmp/lockstep-start && unset LOCKSTEP_START && "
    "exec sh /tmp/lockstep-start'";

}  // namespace lockstep::cloud
