// The serving end on a host: gives a tree's files, also those still arriving, to hosts with the
// key.
#pragma once

#include "base/error.h"
#include "peer/meeting.h"
#include "sync/host_tree.h"

#include <string>

namespace lockstep::peer {

// Reads a Meeting from `in`, listens on a free port, and answers with Listening. A child process
// serves each host that connects. A byte on `in` means that no more files will arrive here: missing
// files count as gone then. Returns at the end of `in`. Ignores SIGPIPE.
Status serve(int in, int out, const sync::HostFolders& folders);

}  // namespace lockstep::peer
