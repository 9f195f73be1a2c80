// `lockstep doctor`: reports what this node has for training and for building extensions, and what
// is wrong with it. The check of a cluster's hosts covers disks, limits and the like, and asks a
// node for the same facts (cluster/check_findings.h).
#pragma once

#include "codec/json.h"
#include "host/facts.h"
#include "setup/finding.h"
#include "setup/python_facts.h"
#include "setup/toolchain.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct SlurmFacts {
  bool installed = false;   // sbatch is in PATH
  bool configured = false;  // slurm.conf exists, or the controller answers without one
  bool answers = false;     // the controller answers scontrol ping
  std::string version = {};
};

struct DoctorFacts {
  host::Facts host = {};
  std::string python_error = {};  // why `python` is empty
  PythonFacts python = {};
  Toolchain tools = {};
  std::vector<int> capabilities = {};     // one per host.gpus, same order; 0: unknown
  bool capabilities_from_driver = false;  // nvidia-smi reported them
  std::int64_t first_port = 0;            // of the kernel's range of ephemeral ports
  std::int64_t last_port = 0;
  std::string port_holder = {};  // the process that listens on torchrun's default port
  bool clock_set = false;        // NTP keeps the clock in step, as the kernel reports
  SlurmFacts slurm = {};
};

// Gathers the facts of this node. given_python: a path or name; empty: the choice of
// choose_python().
DoctorFacts examine(const std::string& given_python);

// Everything below is pure.
std::vector<Finding> findings_of(const DoctorFacts& facts);
std::string facts_text(const DoctorFacts& facts);
nlohmann::ordered_json facts_json(const DoctorFacts& facts);

}  // namespace lockstep::setup
