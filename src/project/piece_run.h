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

// A tree and its place on the hosts.
struct Delivered {
  const std::string& root;
  const std::string& destination;
  const sync::Owner& owner;
  // Contents of some files, by path, which are sent in place of what lies there by now.
  const std::map<std::string, std::string>& held;
};

// Same contract as run_transfers(). Skips files that have changed or gone since the scan, and adds
// their paths to `left_out`.
Result<std::vector<TransferEnd>> deliver(io::Loop& loop, const Delivered& what,
                                         const std::vector<Transfer>& transfers,
                                         const TellTransfer& tell, std::set<std::string>& left_out,
                                         const hosts::RunCommand& run_command);

struct Fetched {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> kept = {};  // newer here
  std::vector<std::string> left_out =
      {};        // links that lead out, HEAD of git, what changed meanwhile
  int code = 0;  // as HostSync::code
  std::string error = {};
  std::string hint = {};
};

// Copies `path` of a tree on a host to the same place below root; "" copies the whole tree. Never
// writes outside of root, whatever the host claims. force: also overwrites files that are newer
// here.
Result<Fetched> fetch(const hosts::HostPlace& host, const std::string& root,
                      const std::string& destination, const std::string& path, bool force,
                      bool dry_run, const TellTransfer& tell, const hosts::RunCommand& run_command);

}  // namespace lockstep::project
