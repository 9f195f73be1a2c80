// One host that gets files from this one.
#pragma once

#include "base/error.h"
#include "peer/secret_channel.h"
#include "sync/confined.h"
#include "sync/record.h"

#include <functional>

namespace lockstep::peer {

// Sends what is asked for as soon as it is there as it was offered. complete: what is not there
// now does not come any more. Returns when the other end has all that it wants.
Status serve_guest(SecretChannel& channel, sync::Confined& tree, const sync::Record& record,
                   const std::function<bool()>& complete);

}  // namespace lockstep::peer
