// `lockstep doctor`: what this node has for training and for building extensions, and what is wrong
// with it. Disks, limits and the like are told by the check of a cluster's hosts, which asks the
// same of a node (cluster/check_findings.h).
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
  bool installed = false;   // its programs are in PATH
  bool configured = false;  // a slurm.conf is there, or the controller answers without one
  bool answers = false;     // the controller does
  std::string version = {};
};

struct DoctorFacts {
  host::Facts host = {};
  std::string python_error = {};  // why there are no facts of it
  PythonFacts python = {};
  Toolchain tools = {};
  std::vector<int> capabilities = {};     // of host.gpus, in their order; 0: not known
  bool capabilities_from_driver = false;  // nvidia-smi told them
  std::int64_t first_port = 0;            // that the kernel gives to whoever asks for any
  std::int64_t last_port = 0;
  std::string port_holder = {};  // who listens on the port where torchrun's nodes meet
  bool clock_set = false;        // by NTP, as the kernel knows it
  SlurmFacts slurm = {};
};

// given_python: empty for choose_python()'s own choice.
DoctorFacts examine(const std::string& given_python);

// Pure, from here on.
std::vector<Finding> findings_of(const DoctorFacts& facts);
std::string facts_text(const DoctorFacts& facts);
nlohmann::ordered_json facts_json(const DoctorFacts& facts);

}  // namespace lockstep::setup
