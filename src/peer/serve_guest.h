// Serves one taking host.
#pragma once

#include "base/error.h"
#include "peer/secret_channel.h"
#include "sync/confined.h"
#include "sync/record.h"

#include <functional>

namespace lockstep::peer {

// Sends each requested file as soon as it is on this host as offered. complete: returns true once
// no more files will arrive. Returns when the other host needs nothing more.
Status serve_guest(SecretChannel& channel, sync::Confined& tree, const sync::Record& record,
                   const std::function<bool()>& complete);

}  // namespace lockstep::peer
