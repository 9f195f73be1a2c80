// The first process in a container: holds on to the process outside that stands for it.
#pragma once

#include "base/error.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::container {

// Variables for the first process. Ranks do not get them.
inline constexpr std::string_view kTetherVariable =
    "LOCKSTEP_CONTAINER_TETHER";  // in the container
inline constexpr std::string_view kTetherFolderVariable = "LOCKSTEP_CONTAINER_TETHER_FOLDER";
inline constexpr std::string_view kMaskVariable = "LOCKSTEP_CONTAINER_UMASK";  // octal
inline constexpr std::string_view kRuntimeVariable = "LOCKSTEP_CONTAINER_RUNTIME";
inline constexpr std::string_view kFolderVariable = "LOCKSTEP_CONTAINER_FOLDER";

// The name of our binary beside the FIFO, if the binary had to be copied for the mount.
inline constexpr std::string_view kBinaryCopy = "lockstep";
// The name of Request::script beside the FIFO.
inline constexpr std::string_view kScriptName = "rc";

// At its end, the process inside writes two bytes into the FIFO: this one, which no signal has as
// its number, and the exit code.
inline constexpr unsigned char kEnded = 0;
// Returns the exit code that the process inside has recorded. nullopt: that process was killed.
// fifo: non-blocking. Never waits.
std::optional<int> recorded_code(int fifo);

// How long a process waits for the kernel to end what it has killed.
inline constexpr std::chrono::seconds kSweepLimit{10};

// Wipes the secrets of a job from the environment that /proc shows of this process: the process
// inside that runs the job has its own copy, and takes the secrets out of that.
void wipe_secrets();

// Returns whether enter() has started this process.
bool is_inside();

struct Inside {
  std::string runtime;  // "podman"
  std::string why;      // for --explain
};
// Splits this process in two and returns in the child. The parent passes the signals from outside
// on. Once every process in the container has ended, it records the child's code for the process
// outside, and exits with it. If the process outside dies, the parent ends all of them. Call early,
// with signals blocked.
Result<Inside> hold_on();

}  // namespace lockstep::container
