// Facts about this machine for a user who wants to run a job on it from another machine.
#pragma once

#include "host/gpus.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::host {

// A folder and its file system. Sizes in bytes.
struct Space {
  std::string path = {};
  bool there = false;
  std::int64_t total = 0;
  std::int64_t free = 0;  // available to this user
  // Number of files that still fit. -1: the file system does not count files.
  std::int64_t files_free = -1;
  bool writable = false;
  bool no_exec = false;  // programs and libraries in the folder cannot be executed
};

struct GpuFacts {
  std::string vendor = {};  // "nvidia", "amd", "intel"
  std::string name = {};
  std::string uuid = {};
  std::int64_t memory = 0;  // bytes; 0: unknown
};

struct ProgramFacts {
  std::string path = {};  // empty: not found
  std::string version = {};
};

struct Facts {
  std::string user = {};
  std::int64_t uid = 0;
  std::string host = {};
  // Equal for two names of one machine, and different for any other machine.
  std::string machine = {};
  std::string os = {};  // "Debian GNU/Linux 12 (bookworm)"
  std::string kernel = {};
  std::string arch = {};  // as printed by `uname -m`
  std::int64_t cpus = 0;  // CPUs that this process may run on
  double cpu_quota = 0;   // limit of the cgroup, in CPUs; 0: none
  std::int64_t memory = 0;
  std::int64_t memory_available = 0;
  std::int64_t memory_limit = 0;  // limit of the cgroup; 0: none
  Space home = {};
  Space tmp = {};
  Space shm = {};
  std::vector<GpuFacts> gpus = {};  // GPUs that a worker would see
  std::string driver = {};          // version of the GPU driver; empty: unknown
  ProgramFacts python = {};
  ProgramFacts project_python = {};  // installed for a project; not gathered here
  ProgramFacts rsync = {};
  ProgramFacts git = {};
  ProgramFacts uv = {};
  std::int64_t open_files = 0;  // the soft limit
  std::int64_t open_files_hard = 0;
  bool logout_kills = false;  // systemd kills every process that a user's session leaves behind
};

// Gathers all facts. `root` is "" outside of tests. run: runs nvidia-smi and the programs'
// --version.
Facts gather_facts(const std::string& root, const RunCommand& run);

// Returns a program's path and version.
ProgramFacts program_facts(const std::string& path, const RunCommand& run);

// Extracts the version: "git version 2.39.5\n..." -> "2.39.5". Pure.
std::string version_in(std::string_view output);
// Returns the PRETTY_NAME in the text of /etc/os-release. Pure.
std::string os_name(std::string_view os_release);

}  // namespace lockstep::host
