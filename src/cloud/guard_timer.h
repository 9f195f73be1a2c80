// Shell scripts that terminate a machine after a time, even if no client ever connects. User data
// arms a first timer within seconds of the first boot. The lease arms a second timer beside its
// daemon. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::cloud {

// The way in which a machine ends its own bill from inside. Each provider's row has such a value,
// with literal texts only.
struct MachineEnding {
  std::string_view word;     // in leases: "poweroff"
  std::string_view command;  // for a shell, without single quotes; tried until the machine is gone
  // For a container: the beginning of the names of variables that `command` needs from process 1.
  // "": a virtual machine, where systemd may run the timer.
  std::string_view variables = {};

  bool operator==(const MachineEnding&) const = default;
};
inline constexpr MachineEnding kPoweroff{.word = "poweroff",
                                         .command = "poweroff || shutdown -P now || halt -p"};

// The way in which a provider announces a preemption to a machine.
enum class NoticeSource {
  none,
  token_and_poll,   // a metadata service with session tokens, polled every two seconds
  wait_for_change,  // a metadata service that answers once a value changes
};

// The name of the timer that user data arms (user_data.h).
inline constexpr std::string_view kBootGuard = "lockstep-guard";

// Returns a script for root that arms a timer of this name: systemd's where systemd runs, else a
// shell that sleeps in a session of its own. The script needs no network and returns at once.
std::string arm_script(std::string_view name, std::int64_t seconds, const MachineEnding& ending);
// Returns the script that cancels the timer.
std::string disarm_script(std::string_view name);

}  // namespace lockstep::cloud
