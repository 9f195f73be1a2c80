// What of the facts of hosts stands in the way of a job, and the cure. Pure.
#pragma once

#include "hosts/host_check.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hosts {

struct Finding {
  enum class Weight {
    trouble,  // it stops a job, sooner or later
    warning,  // it may
  };
  Weight weight = Weight::trouble;
  std::string_view what;           // a word for programs: "tmp-noexec"
  std::vector<std::string> nodes;  // of which it is true
  std::string text;
  std::string cure;
};

// Hosts that were not reached are passed over. The same of several hosts is one finding.
std::vector<Finding> findings_of(const std::vector<HostCheck>& checks);

}  // namespace lockstep::hosts
