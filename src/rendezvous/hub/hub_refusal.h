// The error that an agent reports after a hub has refused the agent.
#pragma once

#include "base/error.h"
#include "rendezvous/hub/hub_frames.h"

namespace lockstep::rendezvous::hub {

// Returns the refusal's text and hint with an error code of the same meaning.
Error refusal_error(const Refusal& refusal);

}  // namespace lockstep::rendezvous::hub
