// Finds facts of hosts that would break or slow a job, and names the cure of each. Pure.
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
  std::vector<std::string> nodes;  // the hosts with this finding
  std::string text;
  std::string cure;
};

// Skips hosts that were not reached. Merges equal findings of several hosts.
std::vector<Finding> findings_of(const std::vector<HostCheck>& checks);

}  // namespace lockstep::hosts
