// Brings a project's files to hosts, for `lockstep sync` and at the start of `run --on` and `call`.
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
  // On the hosts, relative to the home there or absolute. Empty: the project's name.
  std::string destination = {};
  bool force = false;  // takes over another project's place; overwrites files in the way
  bool dry_run = false;
  bool everything = false;  // sends ignored files too
  // The project is a tree that a client has synced to this machine: sends only the files that the
  // client has sent, and no outputs of earlier jobs.
  bool as_received = false;
  // Called often during transfers, with the bytes sent to all hosts so far and the total.
  std::function<void(std::uint64_t bytes, std::uint64_t of)> progress = {};
  // Called with remarks for the user: before much is sent, about removed files, and so on.
  std::function<void(const std::string& remark)> remark = {};
  hosts::RunCommand run_command = hosts::over_links();
};

struct HostSync {
  std::string name;
  std::string place = {};   // absolute path of the tree on the host
  std::size_t files = 0;    // sent files; in a dry run: files to send
  std::uint64_t bytes = 0;  // contents of files, on the wire
  std::string from = {};    // the host that sent the files; empty: this machine
  std::size_t removed = 0;  // files removed there: sent earlier, and gone here
  std::size_t edited = 0;   // files overwritten there: sent earlier, and changed there
  int code = 0;             // 0; 1: not synced; 255: not reached; 128 + signal
  bool absent = false;      // the error is that the host has no such path
  std::string error = {};   // a line with the name of the host; empty: success
  std::string hint = {};
};

struct SyncReport {
  std::size_t files = 0;  // files of the project
  std::uint64_t bytes = 0;
  double seconds = 0;
  std::vector<HostSync> hosts;
};

// Sends the project's files to all hosts. Fails if the project cannot be read. Trouble with one
// host goes into the report and does not affect other hosts. The signals of proc::handled_signals()
// must be blocked.
Result<SyncReport> sync_project(const std::vector<hosts::HostPlace>& hosts, const Project& project,
                                const SyncOptions& options);

// Copies `path` of the tree on a host back to the same place here; "" copies the whole tree. Keeps
// a file that is newer here, unless forced. `files` and `bytes` of the result count the received
// files. Fails if this machine cannot write or a signal came; trouble with the host is in the
// result.
Result<HostSync> sync_back(const hosts::HostPlace& place, const Project& project,
                           const std::string& path, const SyncOptions& options);

// Returns the exit code for all hosts: the first that is not 0.
int code_of(const SyncReport& report);

// Returns "12 files, 3.4 MB sent, 2 removed", for people.
std::string summary_of(const HostSync& host, bool dry_run);
// Returns a size with decimal units: "3.4 MB".
std::string size_text(std::uint64_t bytes);

}  // namespace lockstep::project
