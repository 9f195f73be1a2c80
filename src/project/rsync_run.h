// Runs an rsync for each host, all at the same time.
#pragma once

#include "base/error.h"
#include "hosts/command_run.h"
#include "io/loop.h"
#include "sync/manifest.h"
#include "sync/offer.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::project {

// The files that a host needs, and the host's answer to the offer.
struct Transfer {
  hosts::HostPlace place;
  sync::Answer answer;
  sync::Manifest needed;
};

struct TransferEnd {
  std::uint64_t bytes = 0;   // contents of files, on the wire
  std::size_t left_out = 0;  // files that changed during the read
  std::string error = {};    // empty: all other files have arrived
  // The signal that asked this process to end, or that killed the program on the host.
  std::optional<int> signal = {};
};

// Called with every change: the files and bytes that were sent to all hosts so far.
using TellTransfer = std::function<void(std::size_t files, std::uint64_t bytes)>;

// Sends the needed files below root to each host, and returns one end per transfer. The signals of
// proc::handled_signals() must be blocked; a signal that asks to end stops the transfers. Other
// work on the loop continues.
Result<std::vector<TransferEnd>> run_transfers(io::Loop& loop, const std::string& root,
                                               const std::vector<Transfer>& transfers,
                                               const TellTransfer& tell);

}  // namespace lockstep::project
