// Exit codes that tell a failure of ours from the code of a program. docs/command-line.md lists
// them for users.
#pragma once

namespace lockstep {

inline constexpr int kExitFailed = 1;        // torchrun's code
inline constexpr int kExitCannotRun = 126;   // a shell's code
inline constexpr int kExitNotFound = 127;    // a shell's code: no such program
inline constexpr int kExitNotReached = 255;  // ssh's code: the host was not reached

}  // namespace lockstep
