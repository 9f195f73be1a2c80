// The taking end on a host: gets a tree's files from another host instead of from the client.
#pragma once

#include "base/error.h"
#include "sync/host_tree.h"

#include <functional>
#include <string>
#include <string_view>

namespace lockstep::peer {

// request: a Meeting with its length. Answers with Connected, then Progress at intervals, then
// Done. Writes only files that this host asked for. SIGTERM ends it without leaving a partial file.
// Ignores SIGPIPE.
Status take(std::string_view request, int out, const sync::HostFolders& folders);

}  // namespace lockstep::peer
