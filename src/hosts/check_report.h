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
  std::vector<std::string> repaired_here = {};
  bool repairs = false;  // --repair was given
};

// A host in full, several as a table; then what was found.
std::string report_text(const CheckReport& report);
nlohmann::ordered_json report_json(const CheckReport& report);
// 255: a host was not reached; 1: something stops a job.
int report_code(const CheckReport& report);

}  // namespace lockstep::hosts
