// The Facts of the machine we are on.
#pragma once

#include "launch/facts.h"

namespace lockstep::launch {

Facts machine_facts();

}  // namespace lockstep::launch
