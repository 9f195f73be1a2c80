// Prints the results of `lockstep cluster check` as text or JSON. Pure.
#pragma once

#include "codec/json.h"
#include "hosts/check_findings.h"
#include "hosts/host_check.h"

#include <string>
#include <vector>

namespace lockstep::hosts {

struct CheckReport {
  std::vector<HostCheck> hosts = {};
  std::vector<Finding> findings = {};
  std::vector<std::string> repaired_here = {};  // files removed on this machine
  bool repairs = false;                         // --repair was given
};

// Returns the report for people: one host in full, several as a table, then repairs, unreachable
// hosts and findings.
std::string report_text(const CheckReport& report);
// Returns the report for programs (--json).
nlohmann::ordered_json report_json(const CheckReport& report);
// Returns the exit code. 255: a host was not reached. 1: a finding stops a job. 0: at most
// warnings.
int report_code(const CheckReport& report);

}  // namespace lockstep::hosts
