// Requests to `lockstep host-job` on the hosts of a job, each about this job alone.
#pragma once

#include "hosts/command_run.h"

#include <string>
#include <vector>

namespace lockstep::jobs::on_hosts {

// Returns the request `lockstep host-job VERB ID` to the hosts, whose answers are kept.
inline hosts::CommandRequest about_job(const std::vector<hosts::HostPlace>& hosts,
                                       const std::string& verb, const std::string& id) {
  return {.hosts = hosts,
          .argv = {"host-job", verb, id},
          .own_binary = true,
          .input = hosts::CommandRequest::Input::none,
          .output = hosts::CommandRequest::Output::keep};
}

}  // namespace lockstep::jobs::on_hosts
