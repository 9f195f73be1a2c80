// A shell script that ends a machine after so long, whoever comes or doesn't: armed in the first
// seconds of its first boot, and again beside its lease. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::cloud {

// What ends the machine from inside.
enum class MachineEnding {
  poweroff,
  runpod_pod,  // a container: its provider's own program removes it
};
std::string_view ending_name(MachineEnding ending);  // "poweroff", "runpod"

// Where a machine learns that it will be taken away.
enum class NoticeSource {
  none,
  token_and_poll,   // a metadata service with tokens, asked every two seconds
  wait_for_change,  // one that answers when something changes
};

// Of the timer that user data arms (user_data.h).
inline constexpr std::string_view kBootGuard = "lockstep-guard";

// The words that end the machine at once, for a shell. Whatever fails, the next is tried.
std::string end_command(MachineEnding ending);

// Arms a timer of this name, as root: systemd's where it is there, else a shell that sleeps, in a
// session of its own. Needs no network, and waits for nothing.
std::string arm_script(std::string_view name, std::int64_t seconds, MachineEnding ending);
// Takes it back.
std::string disarm_script(std::string_view name);

}  // namespace lockstep::cloud
