// Finds facts of hosts that would break or slow a job, and names the cure of each. Pure.
#pragma once

#include "hosts/host_check.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hosts {

struct Finding {
  enum class Weight {
    trouble,  // stops a job, sooner or later
    warning,  // may stop or slow a job
  };
  Weight weight = Weight::trouble;
  std::string_view what;           // a stable word for programs: "tmp-noexec"
  std::vector<std::string> nodes;  // the hosts with this finding
  std::string text;                // for people, without the names of the hosts
  std::string cure;                // what the user can do, as an imperative
};

// Returns the findings of all hosts that were reached, trouble before warnings. Equal findings of
// several hosts become one with several nodes.
std::vector<Finding> findings_of(const std::vector<HostCheck>& checks);

}  // namespace lockstep::hosts
