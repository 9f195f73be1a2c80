// Runs one rsync per host, all at once.
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

struct Transfer {
  hosts::HostPlace place;
  sync::Answer answer;
  sync::Manifest needed;
};

struct TransferEnd {
  std::uint64_t bytes = 0;         // of file contents, on the wire
  std::size_t left_out = 0;        // files that changed during the read
  std::string error = {};          // empty: all else has arrived
  std::optional<int> signal = {};  // this process was asked to end
};

// tell: with every change, the files and bytes sent to all hosts so far.
using TellTransfer = std::function<void(std::size_t files, std::uint64_t bytes)>;

// Signals that end this process must be blocked; such a signal ends the transfers. Other work on
// the loop continues.
Result<std::vector<TransferEnd>> run_transfers(io::Loop& loop, const std::string& root,
                                               const std::vector<Transfer>& transfers,
                                               const TellTransfer& tell);

}  // namespace lockstep::project
