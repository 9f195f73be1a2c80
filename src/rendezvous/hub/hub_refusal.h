#pragma once

#include "base/error.h"
#include "rendezvous/hub/hub_frames.h"

namespace lockstep::rendezvous::hub {

// What a refusal means for the one who asked.
Error refusal_error(const Refusal& refusal);

}  // namespace lockstep::rendezvous::hub
