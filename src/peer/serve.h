// The host that has a tree's files, or is getting them, gives them to others that have the key.
#pragma once

#include "base/error.h"
#include "peer/meeting.h"
#include "sync/host_tree.h"

#include <string>

namespace lockstep::peer {

// Reads a Meeting from `in`, listens on a free port and answers with Listening. Each host that
// connects is served by a child process of its own. A byte on `in` says that no more files will
// come to this host: what it lacks then is gone. The end of `in` ends it all. Ignores SIGPIPE.
Status serve(int in, int out, const sync::HostFolders& folders);

}  // namespace lockstep::peer
