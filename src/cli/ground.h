// What a job on other machines stands on: the folder that it runs in there, and what is brought
// before it begins.
#pragma once

#include "cli/environment_options.h"
#include "cli/remote_options.h"
#include "hosts/host_link.h"
#include "project/project.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

// Where the job runs there, and what is brought.
struct Ground {
  std::optional<project::Project> project;  // nullopt: nothing is brought
  std::string folder;                       // there
};

// here: the job runs on this machine, to which nothing is brought.
Result<Ground> ground_of(const RemoteOptions& options, bool here);

// A script that lies in the project is named as it lies there.
std::string script_there(const std::string& script, const Ground& ground);

// Brings the project's files, then installs packages. The exit code: not 0 where a host is not
// ready, which has been said.
Result<int> make_ready(std::string_view program, const RemoteOptions& options,
                       const std::vector<hosts::HostPlace>& places, const Ground& ground,
                       const ChosenEnvironment& environment);

}  // namespace lockstep::cli
