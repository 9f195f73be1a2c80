// Files that go to hosts, and come back from one, in pieces of our own, without rsync.
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

// What is delivered, and to which trees.
struct Delivered {
  const std::string& root;
  const std::string& destination;
  const sync::Owner& owner;
  // Contents of some files, by path, which are sent in place of what lies there by now.
  const std::map<std::string, std::string>& held;
};

// As run_transfers(). Files that have changed or gone since they were looked at are left out: their
// paths are added to `left_out`.
Result<std::vector<TransferEnd>> deliver(io::Loop& loop, const Delivered& what,
                                         const std::vector<Transfer>& transfers,
                                         const TellTransfer& tell, std::set<std::string>& left_out);

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

// Brings what lies at `path` of a tree on a host to the same place below root; "": all of it.
// Writes nothing outside of root, whatever the host says. force: also over files that are newer
// here.
Result<Fetched> fetch(const hosts::HostPlace& host, const std::string& root,
                      const std::string& destination, const std::string& path, bool force,
                      bool dry_run, const TellTransfer& tell);

}  // namespace lockstep::project
