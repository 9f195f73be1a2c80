// Names of system calls.
#pragma once

#include <string>

namespace lockstep::stacks {

// Returns the name of a call in which threads wait, such as "futex". Others: "system call 462".
std::string call_name(int number);

}  // namespace lockstep::stacks
