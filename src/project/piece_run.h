// Transfers files to hosts, and back from a host, without rsync.
#pragma once

#include "base/error.h"
#include "project/rsync_run.h"
#include "sync/record.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace lockstep::project {

// A tree and its place on the hosts. The references must outlive the delivery.
struct Delivered {
  const std::string& root;
  const std::string& destination;
  const sync::Owner& owner;
  // Contents of some files, by path, sent in place of the content on disk.
  const std::map<std::string, std::string>& held;
};

// Sends the needed files over the links, with the contract of run_transfers(). Skips files that
// have changed or gone since the scan, and adds their paths to `left_out`. Fails only if the tree
// cannot be opened or the command cannot begin.
Result<std::vector<TransferEnd>> deliver(io::Loop& loop, const Delivered& what,
                                         const std::vector<Transfer>& transfers,
                                         const TellTransfer& tell, std::set<std::string>& left_out,
                                         const hosts::RunCommand& run_command);

struct Fetched {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> kept = {};  // files that are newer here
  // Links that lead out of the tree, files called HEAD, and files that changed meanwhile.
  std::vector<std::string> left_out = {};
  int code = 0;         // as HostSync::code
  bool absent = false;  // likewise
  std::string error = {};
  std::string hint = {};
};

// Copies `path` of a tree on a host to the same place below root; "" copies the whole tree. Never
// writes outside of root, whatever the host claims. force: also overwrites files that are newer
// here. An error means that this machine cannot go on; trouble of the host is in Fetched::error.
// The caller holds the lock of the root (TreeLocks::take_back()).
Result<Fetched> fetch(const hosts::HostPlace& host, const std::string& root,
                      const std::string& destination, const std::string& path, bool force,
                      bool dry_run, const TellTransfer& tell, const hosts::RunCommand& run_command);

}  // namespace lockstep::project
