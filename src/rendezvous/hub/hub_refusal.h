#pragma once

#include "base/error.h"
#include "rendezvous/hub/hub_frames.h"

namespace lockstep::rendezvous::hub {

// The error that the agent reports which was refused.
Error refusal_error(const Refusal& refusal);

}  // namespace lockstep::rendezvous::hub
