// Shell scripts that end a machine after a time, even if no client ever connects. User data arms
// one in the first seconds of the first boot, and the lease arms another beside its daemon. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::cloud {

// How a machine ends its own bill from inside. Each provider's row has one; all texts are literals.
struct MachineEnding {
  std::string_view word;     // in leases: "poweroff"
  std::string_view command;  // for a shell, without single quotes; tried until the machine is gone
  // In a container: what the names of the variables of process 1 begin with that `command` needs.
  // "": a virtual machine, where systemd may run the timer.
  std::string_view variables = {};

  bool operator==(const MachineEnding&) const = default;
};
inline constexpr MachineEnding kPoweroff{.word = "poweroff",
                                         .command = "poweroff || shutdown -P now || halt -p"};

// How a machine learns that its provider will preempt it.
enum class NoticeSource {
  none,
  token_and_poll,   // a metadata service with session tokens, polled every two seconds
  wait_for_change,  // a metadata service that answers once a value changes
};

// Name of the timer that user data arms (user_data.h).
inline constexpr std::string_view kBootGuard = "lockstep-guard";

// Returns a script for root that arms a timer of this name: systemd's where systemd runs, else a
// shell that sleeps in a session of its own. The script needs no network and returns at once.
std::string arm_script(std::string_view name, std::int64_t seconds, const MachineEnding& ending);
// Returns the script that cancels the timer.
std::string disarm_script(std::string_view name);

}  // namespace lockstep::cloud
