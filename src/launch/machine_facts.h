// The Facts of this machine.
#pragma once

#include "launch/facts.h"

namespace lockstep::launch {

// Returns functions that ask this machine when called.
Facts machine_facts();

}  // namespace lockstep::launch
