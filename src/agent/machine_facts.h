// The Facts of the machine we are on.
#pragma once

#include "agent/launch_facts.h"

namespace lockstep::agent {

Facts machine_facts();

}  // namespace lockstep::agent
