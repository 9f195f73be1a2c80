// The host that gets a tree's files from another host instead of from the client.
#pragma once

#include "base/error.h"
#include "sync/host_tree.h"

#include <functional>
#include <string>
#include <string_view>

namespace lockstep::peer {

// request: a Meeting with its length. Answers with Connected, Progress from time to time, and Done.
// Writes only what this host has said that it needs. SIGTERM ends it without a half file.
// Ignores SIGPIPE.
Status take(std::string_view request, int out, const sync::HostFolders& folders);

}  // namespace lockstep::peer
