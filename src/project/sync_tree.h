// Brings a project's files to hosts. `lockstep sync` is this; `run --on` and `call` begin with it.
#pragma once

#include "base/error.h"
#include "hosts/command_run.h"
#include "project/project.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::project {

struct SyncOptions {
  std::string destination = {};  // on the hosts, relative to the home; empty: the project's name
  bool force = false;            // takes over another tree's place, overwrites what is in the way
  bool dry_run = false;
  bool everything = false;  // ignored files too
  // Called often during transfers, with the bytes sent to all hosts so far and the total.
  std::function<void(std::uint64_t bytes, std::uint64_t of)> progress = {};
  // Called before much is sent, and with whatever else is worth a person's knowing.
  std::function<void(const std::string& remark)> remark = {};
  hosts::RunCommand run_command = hosts::over_links();
};

struct HostSync {
  std::string name;
  std::string place = {};   // absolute path of the tree on the host
  std::size_t files = 0;    // sent, or by a dry run: to be sent
  std::uint64_t bytes = 0;  // of file contents, on the wire
  std::string from = {};    // the host that sent the files; empty: this machine
  std::size_t removed = 0;  // sent earlier, gone here
  std::size_t edited = 0;   // changed there, overwritten
  int code = 0;             // 0; 1: not synced; 255: not reached; 128 + signal
  std::string error = {};   // one line that names the host; empty: success
  std::string hint = {};
};

struct SyncReport {
  std::size_t files = 0;  // that belong to the project
  std::uint64_t bytes = 0;
  double seconds = 0;
  std::vector<HostSync> hosts;
};

// Fails if the project cannot be read. Trouble with one host goes into the report and does not
// affect other hosts. The signals of proc::handled_signals() must be blocked.
Result<SyncReport> sync_project(const std::vector<hosts::HostPlace>& hosts, const Project& project,
                                const SyncOptions& options);

// Copies `path` of the tree on a host back to the same place here; "" copies the whole tree. Keeps
// a file that is newer here, unless forced. `files` and `bytes` of the result count the received
// files.
Result<HostSync> sync_back(const hosts::HostPlace& place, const Project& project,
                           const std::string& path, const SyncOptions& options);

// The exit code of all: the first that is not 0.
int code_of(const SyncReport& report);

// "12 files, 3.4 MB sent, 2 removed", for people.
std::string summary_of(const HostSync& host, bool dry_run);
std::string size_text(std::uint64_t bytes);

}  // namespace lockstep::project
