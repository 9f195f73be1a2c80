// What a rented machine is told before anybody can log in: who may, by which key it shows itself,
// and when it ends if nobody ever comes. Pure.
#pragma once

#include "base/error.h"
#include "cloud/guard_timer.h"
#include "cloud/key_pair.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::cloud {

struct FirstBoot {
  KeyPair host_key;             // for the first contact only: what is on the machine reads it
  std::string user_public_key;  // "ssh-ed25519 AAAA... lockstep"
  std::int64_t guard_s = 1200;  // it ends itself, unless a lease has taken the timer's place
};

// Text for cloud-init (LaunchSpec::user_data of virtual machines), under 4 KiB.
Result<std::string> cloud_config(const FirstBoot& boot);

// For containers without cloud-init: a POSIX shell script, to be run as root in place of what the
// image would run. It arms the timer, writes the keys, sees to sshd, and becomes it.
Result<std::string> container_start(const FirstBoot& boot, MachineEnding ending);

// How a container gets that script without its being in a command line: the first is the name of a
// variable with the script in base64, the second what is run.
inline constexpr std::string_view kStartVariable = "LOCKSTEP_START";
inline constexpr std::string_view kStartCommand =
    "sh -c 'echo \"$LOCKSTEP_START\" | base64 -d >/tmp/lockstep-start && unset LOCKSTEP_START && "
    "exec sh /tmp/lockstep-start'";

}  // namespace lockstep::cloud
