// What this machine is and has, for somebody who wants to run a job on it from afar.
#pragma once

#include "host/gpus.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::host {

// A folder and the file system behind it. Sizes in bytes.
struct Space {
  std::string path = {};
  bool there = false;
  std::int64_t total = 0;
  std::int64_t free = 0;         // for this user
  std::int64_t files_free = -1;  // how many more files fit; -1: the file system does not count
  bool writable = false;
  bool no_exec = false;  // programs and libraries in it can't be run
};

struct GpuFacts {
  std::string vendor = {};  // "nvidia", "amd", "intel"
  std::string name = {};
  std::string uuid = {};
  std::int64_t memory = 0;  // bytes; 0: unknown
};

struct ProgramFacts {
  std::string path = {};  // empty: it is not there
  std::string version = {};
};

struct Facts {
  std::string user = {};
  std::int64_t uid = 0;
  std::string host = {};
  std::string machine = {};  // the same for two names of one machine, and for nothing else
  std::string os = {};       // "Debian GNU/Linux 12 (bookworm)"
  std::string kernel = {};
  std::string arch = {};  // as `uname -m` says it
  std::int64_t cpus = 0;  // that this process may run on
  double cpu_quota = 0;   // of its cgroup, in CPUs; 0: none
  std::int64_t memory = 0;
  std::int64_t memory_available = 0;
  std::int64_t memory_limit = 0;  // of its cgroup; 0: none
  Space home = {};
  Space tmp = {};
  Space shm = {};
  std::vector<GpuFacts> gpus = {};  // that a worker would see
  std::string driver = {};          // version of the GPUs' driver; empty: unknown
  ProgramFacts python = {};
  ProgramFacts project_python = {};  // of what was installed for a project; not gathered here
  ProgramFacts rsync = {};
  ProgramFacts git = {};
  ProgramFacts uv = {};
  std::int64_t open_files = 0;  // the soft limit
  std::int64_t open_files_hard = 0;
  bool logout_kills = false;  // systemd ends what a user's session has left, whatever it is
};

// `root` is "" except in tests. run: for nvidia-smi and the programs' versions.
Facts gather_facts(const std::string& root, const RunCommand& run);

// A program's path and what it says of its version.
ProgramFacts program_facts(const std::string& path, const RunCommand& run);

// "git version 2.39.5\n…" -> "2.39.5". Pure.
std::string version_in(std::string_view output);
// The PRETTY_NAME of /etc/os-release. Pure.
std::string os_name(std::string_view os_release);

}  // namespace lockstep::host
